package fleet_test

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gcsup/fleet/internal/fleet"
	"gcsup/internal/require"
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

// TestBadWorkerAlone starts a worker that has no permission, or other keys than that of the submitter, before the others, as
// after a power failure. It fails more often than is allowed, and the file becomes no dead letter: the next worker uploads it.
func TestBadWorkerAlone(t *testing.T) {
	t.Parallel()
	key, public := keyOf(1)
	_, others := keyOf(2)
	for name, c := range map[string]struct {
		keys      []ed25519.PublicKey
		transport func(http.RoundTripper) http.RoundTripper
	}{
		"permission": {public, func(base http.RoundTripper) http.RoundTripper { return forbidden{base} }},
		"signature":  {others, func(base http.RoundTripper) http.RoundTripper { return base }},
	} {
		w := newWorld(t, nil)
		w.write("a", 1000, 1)
		q := must(fleet.OpenQueue(t.Context(), w.connect(), fleet.QueueOptions{AckWait: w.ackWait, SignKey: key, VerifyKeys: public}))
		w.submit(q)
		hc := *w.gcs.Client()
		hc.Transport = c.transport(hc.Transport)
		twice := func(o *fleet.WorkerOptions) { o.MaxFailures, o.MissingFor = 2, time.Minute }
		bad := w.workerOf(must(fleet.OpenQueue(t.Context(), w.connect(), fleet.QueueOptions{VerifyKeys: c.keys})), &hc, name, twice)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- bad.Run(ctx) }()
		w.await("tried twice", func() bool { return bad.Metrics().FailedDeliveries >= 2 })
		stop()
		require.NoError(t, <-ended)
		w.run(t.Context(), w.worker(q, "good", twice))
		w.wantLetters(q, nil)
		w.check()
	}
}

// TestGroupAtWorkerWithoutPermission uploads a group with a missing file, and then delivers it to a worker that has no
// permission. Only the missing file becomes a dead letter. Its kind is permission if the second worker has not tried it,
// because the bucket refused other files before.
func TestGroupAtWorkerWithoutPermission(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.fill("%d", 10, 1000)
	q := w.queue()
	w.submit(q)
	require.NoError(t, os.Remove(filepath.Join(w.tree, "3")))
	twice := func(o *fleet.WorkerOptions) { o.MaxFailures = 2 }
	good := w.start("good", twice)
	w.await("tried", func() bool { return w.status(q).Retried > 0 })
	good.kill()
	hc := *w.gcs.Client()
	hc.Transport = forbidden{hc.Transport}
	w.run(t.Context(), w.workerOf(q, &hc, "bad", twice))
	if got := w.letters(q); len(got) != 1 || got["tree/3"] != "no_input" && got["tree/3"] != "permission" {
		t.Errorf("dead letters: %v, want one of the missing file", got)
	}
	if s := w.status(q); s.Done.Files != 9 || s.Done.Bytes != 9000 || s.Failed != 1 {
		t.Errorf("status %+v, want 9 files done and 1 failed", s)
	}
	w.check()
}

// TestEmptyMount takes the tree away from the only worker until all tasks have failed, and mounts it again. No file
// becomes a dead letter, and the worker uploads them.
func TestEmptyMount(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.fill("%02d", 30, ownTask)
	q := w.queue()
	w.submit(q)
	away := w.tree + ".away"
	require.NoError(t, os.Rename(w.tree, away))
	v := w.start("only", func(o *fleet.WorkerOptions) { o.MaxFailures, o.MissingFor = 1, time.Minute })
	w.await("tried twice", func() bool { return v.Metrics().FailedDeliveries >= 60 })
	require.NoError(t, os.Rename(away, w.tree))
	<-v.done
	w.wantLetters(q, nil)
	w.check()
}

// TestBadTasks submits a file behind 1,000 files whose directory was removed. Each of these is tried by each worker, and
// does not keep the workers from the good one for longer than a first try of each.
func TestBadTasks(t *testing.T) {
	t.Parallel()
	const bad = 1000
	w := newWorld(t, nil)
	q := w.queue()
	for i := range bad {
		w.write(fmt.Sprintf("bad/%04d", i), 0, 0)
		require.NoError(t, os.Truncate(filepath.Join(w.tree, fmt.Sprintf("bad/%04d", i)), 9<<20))
	}
	w.submit(q)
	require.NoError(t, os.RemoveAll(filepath.Join(w.tree, "bad")))
	w.write("good", 1000, 1)
	w.submit(q)
	var workers []*victim
	for i := range 4 {
		workers = append(workers, w.start(fmt.Sprintf("w%d", i), func(o *fleet.WorkerOptions) { o.MissingFor, o.Logger = 10*time.Minute, nil }))
	}
	w.await("uploaded", func() bool { return w.made("tree/good") > 0 })
	failed := int64(0)
	for _, v := range workers {
		failed += v.Metrics().FailedDeliveries
	}
	if failed > 2*bad {
		t.Errorf("%d bad tasks failed %d times before the good one was tried", bad, failed)
	}
	w.wantLetters(q, nil)
}
