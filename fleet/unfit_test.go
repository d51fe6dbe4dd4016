package fleet_test

import (
	"crypto/aes"
	"crypto/cipher"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gcsup/fakegcs"
	"gcsup/fleet"
)

// forbidden is a transport that answers 403 to each request for the data bucket, like the service if
// an account has no permission.
type forbidden struct{ base http.RoundTripper }

func (f forbidden) RoundTrip(req *http.Request) (*http.Response, error) {
	if !strings.Contains(req.URL.Path, "/b/"+bucket+"/") {
		return f.base.RoundTrip(req)
	}
	if req.Body != nil {
		_, _ = io.Copy(io.Discard, req.Body)
		_ = req.Body.Close()
	}
	body := `{"error":{"code":403,"message":"no permission","errors":[{"reason":"forbidden","message":"no permission"}]}}`
	return &http.Response{
		StatusCode: http.StatusForbidden, Status: "403 Forbidden", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req,
		Header: http.Header{"Content-Type": {"application/json"}, "X-Guploader-Uploadid": {"x"}}, Body: io.NopCloser(strings.NewReader(body)),
	}, nil
}

// TestUnfitWorker uploads many files while one of two workers has no permission. It stops taking
// tasks, and no file becomes a dead letter although the other worker is busy.
func TestUnfitWorker(t *testing.T) {
	t.Parallel()
	w := newWorld(t, &fakegcs.Options{Rate: 4 << 20})
	for i := range 20 {
		w.write(fmt.Sprintf("%03d", i), 2<<20, uint64(i))
	}
	q := w.queue()
	w.submit(q)
	one := func(o *fleet.WorkerOptions) { o.Jobs, o.Tries, o.UntilEmpty = 1, 2, false }
	w.start("good", one)
	hc := *w.gcs.Client()
	hc.Transport = forbidden{hc.Transport}
	bad := w.startWith("bad", &hc, one)
	seen := false
	for end := time.Now().Add(time.Minute); ; pause(t.Context(), 100*time.Millisecond) {
		s := w.status(q)
		for _, worker := range s.Workers {
			if u := worker.Unfit; u != nil {
				seen = true
				if worker.Name != "bad" || worker.Condition != "unfit" || u.Kind != "permission" || u.Reason == "" {
					t.Errorf("worker %s is %s: %+v", worker.Name, worker.Condition, u)
				}
			}
		}
		if s.Tasks == 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("not finished: %+v", s)
		}
	}
	if got := w.letters(q); len(got) != 0 {
		t.Errorf("dead letters: %v", got)
	}
	if !seen || bad.Status().Unfit == nil {
		t.Error("the worker without permission is not unfit")
	}
	w.check()
}

// TestUnfitWorkerAlone starts a worker that has no permission before the others, as after a power failure. It fails
// more often than the tries, and the file becomes no dead letter: the next worker uploads it.
func TestUnfitWorkerAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.write("a", 1000, 1)
	q := w.queue()
	w.submit(q)
	hc := *w.gcs.Client()
	hc.Transport = forbidden{hc.Transport}
	twice := func(o *fleet.WorkerOptions) { o.Tries, o.MissingFor = 2, time.Minute }
	bad := w.startWith("bad", &hc, twice)
	w.await("tried twice", func() bool { return bad.Metrics().FailedDeliveries >= 2 })
	bad.kill()
	w.run(t.Context(), w.worker(q, "good", twice))
	if got := w.letters(q); len(got) != 0 {
		t.Errorf("dead letters: %v", got)
	}
	w.check()
}

// TestGroupAtUnfitWorker uploads a group with a missing file, and then delivers it to a worker that has no
// permission. Only the missing file becomes a dead letter.
func TestGroupAtUnfitWorker(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for i := range 10 {
		w.write(fmt.Sprint(i), 1000, uint64(i))
	}
	q := w.queue()
	w.submit(q)
	if err := os.Remove(filepath.Join(w.tree, "3")); err != nil {
		t.Fatal(err)
	}
	twice := func(o *fleet.WorkerOptions) { o.Tries = 2 }
	good := w.start("good", twice)
	w.await("tried", func() bool { return w.status(q).Retried > 0 })
	good.kill()
	hc := *w.gcs.Client()
	hc.Transport = forbidden{hc.Transport}
	w.run(t.Context(), w.workerOf(q, &hc, "bad", twice))
	if got := w.letters(q); len(got) != 1 || got["tree/3"] != "no_input" {
		t.Errorf("dead letters: %v, want one of the missing file", got)
	}
	if s := w.status(q); s.Done.Files != 9 || s.Done.Bytes != 9000 || s.Failed != 1 {
		t.Errorf("status %+v, want 9 files done and 1 failed", s)
	}
	w.check()
}

// TestEmptyMount takes the tree away from the only worker until it has tried a task again, and
// mounts it again. The worker leaves most tasks alone, no file becomes a dead letter, and the worker
// uploads them.
func TestEmptyMount(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for i := range 30 {
		w.write(fmt.Sprintf("%03d", i), 2<<20, uint64(i))
	}
	q := w.queue()
	w.submit(q)
	away := w.tree + ".away"
	if err := os.Rename(w.tree, away); err != nil {
		t.Fatal(err)
	}
	v := w.start("only", nil)
	w.await("unfit", func() bool { return v.Status().Unfit != nil })
	u := v.Status().Unfit
	if u.Kind != "no_input" {
		t.Errorf("unfit: %+v", u)
	}
	w.await("tried again", func() bool { return time.Now().After(u.Next) && !v.Status().Unfit.Next.Equal(u.Next) })
	if s := w.status(q); s.Retried > 15 {
		t.Errorf("an unfit worker failed with %d of %d tasks", s.Retried, s.Waiting.Files)
	}
	if err := os.Rename(away, w.tree); err != nil {
		t.Fatal(err)
	}
	<-v.done
	if got := w.letters(q); len(got) != 0 {
		t.Errorf("dead letters: %v", got)
	}
	w.check()
}

// TestWrongKey starts a worker with another key than that of the first one.
func TestWrongKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	q := w.queue()
	w.worker(q, "first", nil)
	w.worker(q, "second", nil)
	block, err := aes.NewCipher([]byte("another key of 32 bytes, not zer"))
	if err != nil {
		t.Fatal(err)
	}
	other, err := cipher.NewGCM(block)
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*fleet.WorkerOptions){
		"another key": func(o *fleet.WorkerOptions) { o.AEAD = other },
		"no key":      func(o *fleet.WorkerOptions) { o.AEAD, o.Unsealed = nil, true },
	} {
		opts := w.options("third", change)
		if _, err := fleet.NewWorker(t.Context(), q, w.gcs.Client(), opts); !errors.Is(err, fleet.ErrStateKey) {
			t.Errorf("%s: %v, want ErrStateKey", name, err)
		}
	}
}
