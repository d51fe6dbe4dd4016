package fleet_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/fleet/internal/fleet"
	"gcsup/internal/require"
	"gcsup/session"
)

// TestSubmitAfterCancel submits a tree again after it was canceled and before the
// worker reads the cancellation. The tasks of the second submit stay.
func TestSubmitAfterCancel(t *testing.T) {
	t.Parallel()
	w, q := submitted(t, &fakegcs.Options{Rate: 2 << 20}, map[string]int{"a": 9 << 20, "b": 9 << 20})
	began := make(chan struct{})
	w.afterPuts("", 1, func() { close(began) })
	w.start("a", func(o *fleet.WorkerOptions) { o.UntilEmpty, o.Upload.ChunkSize = false, 256<<10 })
	<-began
	must(q.Cancel(t.Context()))
	w.write("c", 9<<20, 3)
	w.submit(q)
	w.run(t.Context(), w.worker(q, "b", nil))
	if s := w.status(q); s.Done.Files != 3 || s.Waiting.Files != 0 {
		t.Errorf("status %+v", s)
	}
	w.check()
}

// TestOtherFileOfSameSizeAndTime submits another directory to the same destination, in which
// a file has the same size and modification time, but other bytes.
func TestOtherFileOfSameSizeAndTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	released := time.Unix(1e9, 0)
	for seed := range uint64(2) {
		w.tree = t.TempDir()
		w.write("a", 1000, seed)
		require.NoError(t, os.Chtimes(filepath.Join(w.tree, "a"), released, released))
		q := w.queue()
		w.submit(q)
		w.run(t.Context(), w.worker(q, "a", nil))
	}
	got, err := w.gcs.ReadObject(bucket, "tree/a")
	if err != nil || string(got) != string(content(1000, 1)) {
		t.Errorf("the object is not the second file: %v", err)
	}
}

// TestSubmitChangedFile changes a file whose upload is saved, and submits it again. The
// upload starts over.
func TestSubmitChangedFile(t *testing.T) {
	t.Parallel()
	w, q := submitted(t, &fakegcs.Options{Rate: 16 << 20}, map[string]int{"large": 12 << 20})
	ctx, stop := context.WithCancel(t.Context())
	w.afterPuts("tree/large", 4, stop)
	w.run(ctx, w.worker(q, "a", chunked))
	w.write("large", 10<<20, 2)
	w.run(t.Context(), w.worker(q, "b", func(o *fleet.WorkerOptions) { o.MaxFailures = 1 }))
	w.wantLetters(q, map[string]string{"tree/large": "stale_copy"})
	w.submit(q)
	w.run(t.Context(), w.worker(q, "c", chunked))
	w.wantLetters(q, nil)
	w.check()
}

// beforeInsert is a transport that calls a function before each request that makes an object of the tree.
type beforeInsert struct {
	base http.RoundTripper
	call func(object string)
}

func (b beforeInsert) RoundTrip(req *http.Request) (*http.Response, error) {
	if name := req.URL.Query().Get("name"); req.Method == http.MethodPost && strings.HasPrefix(name, "tree/") {
		b.call(name)
	}
	return b.base.RoundTrip(req)
}

// TestSubmitWhileOlderTaskIsSent changes a file that a worker has read, and submits the tree again with one more file, so
// that both tasks have the file. The later one fails, because the object is that of the earlier one. When the earlier one is
// finished, the dead letter of the later one stays.
func TestSubmitWhileOlderTaskIsSent(t *testing.T) {
	t.Parallel()
	w, q := submitted(t, nil, map[string]int{"a": 1000, "b": 1000})
	changed := sync.OnceFunc(func() {
		w.write("a", 1001, 3)
		w.write("c", 1000, 4)
		w.submit(q)
	})
	failed := sync.OnceFunc(func() {
		w.await("made", func() bool { return w.made("tree/a") > 0 })
		w.start("second", nil)
		w.await("failed", func() bool { return len(w.letters(q)) > 0 })
	})
	hc := *w.gcs.Client()
	hc.Transport = beforeInsert{hc.Transport, func(object string) {
		switch object {
		case "tree/a":
			changed()
		case "tree/b":
			failed()
		}
	}}
	w.ends(w.workerOf(q, &hc, "first", func(o *fleet.WorkerOptions) { o.Jobs = 1 }), fleet.ErrFilesFailed)
	w.wantLetters(q, map[string]string{"tree/a": "precondition"})
	w.submit(q)
	w.ends(w.worker(q, "third", nil), nil)
	if got, err := w.gcs.ReadObject(bucket, "tree/a"); string(got) != string(content(1001, 3)) {
		t.Errorf("the object is not the changed file: %v", err)
	}
}

// TestStaleCopy changes files after their submit. A worker uploads them only with AcceptChanged, and the
// status then reports their number.
func TestStaleCopy(t *testing.T) {
	t.Parallel()
	w, q := submitted(t, nil, map[string]int{"a": 1000, "b": 1000, "c": 1000, "large": 12 << 20})
	w.write("b", 1001, 2)
	w.write("large", 9<<20, 2)
	w.run(t.Context(), w.worker(q, "first", func(o *fleet.WorkerOptions) { o.MaxFailures = 1 }))
	w.wantLetters(q, map[string]string{"tree/b": "stale_copy", "tree/large": "stale_copy"})
	if s := w.status(q); s.Done.Files != 2 || s.Changed != 0 {
		t.Errorf("status %+v, want 2 files", s)
	}
	must(q.RetryFailed(t.Context()))
	w.ends(w.worker(q, "second", func(o *fleet.WorkerOptions) { o.AcceptChanged = true }), nil)
	if s := w.status(q); s.Done.Files != 4 || s.Changed != 2 {
		t.Errorf("status %+v, want 4 files, and that 2 changed", s)
	}
	w.check()
}

// TestSubmitWhileFileChanges changes a file after a worker has uploaded it, and submits the tree again
// while the task is still in the queue. The submit reports the change, and a later submit uploads the
// file.
func TestSubmitWhileFileChanges(t *testing.T) {
	t.Parallel()
	w, q := submitted(t, nil, map[string]int{"a": 1000, "b": 1000, "c": 1000})
	if got := w.submit(q); got.Queued != 3 || got.Changed != 0 {
		t.Errorf("submit of the same files: %+v", got)
	}
	var inserts atomic.Int64
	w.onRequest.Store(new(func(r fakegcs.Request) {
		if r.Op == faults.OpInsert && inserts.Add(1) == 3 { // all files were read, in any order
			w.write("a", 1001, 2)
			if got := w.submit(q); got.Queued != 3 || got.Changed != 1 {
				t.Errorf("submit of a changed file that is in the queue: %+v", got)
			}
		}
	}))
	w.ends(w.worker(q, "a", func(o *fleet.WorkerOptions) { o.Jobs = 1 }), fleet.ErrUnknownTotal)
	if got := w.submit(q); got.Files != 3 {
		t.Errorf("submit of a changed file: %+v", got)
	}
	w.ends(w.worker(q, "b", nil), nil)
	if got, err := w.gcs.ReadObject(bucket, "tree/a"); string(got) != string(content(1001, 2)) {
		t.Errorf("the object is not the changed file: %v", err)
	}
}

// TestSubmitToMissingBucket submits a tree to a bucket that does not exist. Nothing is put
// into the queue.
func TestSubmitToMissingBucket(t *testing.T) {
	t.Parallel()
	missing := faults.Action{Effect: faults.EffectStatus, Status: 404}
	w := newWorld(t, &fakegcs.Options{Faults: []faults.Fault{{Match: faults.Match{Bucket: bucket}, Times: -1, Do: missing}}})
	w.write("a", 1000, 1)
	q := w.queue()
	done, err := fleet.Submit(t.Context(), q, w.submission("tree/"))
	if !errors.Is(err, session.ErrNotFound) || done.Files != 0 {
		t.Errorf("submit: %+v, %v, want ErrNotFound", done, err)
	}
	if err := q.Settled(t.Context(), nil); !errors.Is(err, fleet.ErrUnknownTotal) || !strings.Contains(err.Error(), "the queue is new") {
		t.Errorf("the queue is settled: %v, want that nothing was submitted", err)
	}
}
