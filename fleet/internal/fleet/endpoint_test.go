package fleet_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"gcsup/fleet/internal/fleet"
	"gcsup/upload"
)

// otherEndpoint returns another name of the service.
func (w *world) otherEndpoint() string {
	w.t.Helper()
	other := strings.Replace(w.gcs.URL, "127.0.0.1", "localhost", 1)
	if other == w.gcs.URL {
		w.t.Fatalf("the service is at %s", other)
	}
	return other
}

// dataRequests returns how many requests for objects of the bucket the service got.
func (w *world) dataRequests() (n int) {
	for _, r := range w.gcs.Requests() {
		if r.Bucket == bucket && r.Object != "" {
			n++
		}
	}
	return n
}

// TestOtherEndpoint starts a worker whose endpoint is not that of the submission. It sends nothing, and continues to
// run. A worker with the right endpoint uploads the files. Without one, they become dead letters.
func TestOtherEndpoint(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.write("a", 1000, 1)
	w.write("large", 9<<20, 2)
	q := w.queue()
	w.submit(q)
	other := w.otherEndpoint()
	elsewhere := func(o *fleet.WorkerOptions) { o.Upload.Endpoint, o.Tries, o.UntilEmpty = other, 1, false }
	before := w.dataRequests()
	wrong := w.start("wrong", func(o *fleet.WorkerOptions) {
		elsewhere(o)
		o.MissingFor = time.Minute
	})
	w.await("tried", func() bool { return w.status(q).Retried == 2 })
	if after := w.dataRequests(); after != before {
		t.Errorf("%d requests for objects", after-before)
	}
	w.run(t.Context(), w.worker(q, "right", nil))
	w.check()
	if got := w.letters(q); len(got) != 0 {
		t.Errorf("dead letters: %v", got)
	}
	select {
	case <-wrong.done:
		t.Error("a message for another endpoint has ended a worker")
	default:
	}

	w = newWorld(t, nil)
	w.write("b", 1000, 3)
	q, other = w.queue(), w.otherEndpoint()
	w.submit(q)
	w.start("wrong", elsewhere)
	w.await("empty", func() bool { return w.status(q).Tasks == 0 })
	err := q.Failed(t.Context(), func(_ string, l fleet.DeadLetter) error {
		if l.Kind != "endpoint" || !strings.Contains(l.Reason, other) || !strings.Contains(l.Reason, w.gcs.URL) || !strings.Contains(l.Reason, "--endpoint") {
			t.Errorf("dead letter %+v, want both endpoints and what to do", l)
		}
		return nil
	})
	if got := w.letters(q); err != nil || len(got) != 1 {
		t.Errorf("dead letters: %v, %v, want that of b", got, err)
	}
}

// TestSubmitToOtherEndpoint checks when a submission to another endpoint is refused: if the queue has files for the
// first endpoint, or if all workers send there.
func TestSubmitToOtherEndpoint(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.write("a", 1000, 1)
	q := w.queue()
	w.submit(q)
	other := w.otherEndpoint()
	submit := func(want error) {
		t.Helper()
		s := w.submission("tree/")
		s.Uploader = must(upload.New(w.gcs.Client(), &upload.Options{Endpoint: other}))
		done, err := fleet.Submit(t.Context(), q, s)
		if !errors.Is(err, want) || want != nil && (done != fleet.Submitted{} || !strings.Contains(err.Error(), other) || !strings.Contains(err.Error(), w.gcs.URL)) {
			t.Errorf("%+v, %v, want %v with both endpoints", done, err, want)
		}
	}
	workers := func(n int) {
		t.Helper()
		w.await("live", func() bool { return len(w.status(q).Workers) == n })
	}
	submit(fleet.ErrEndpoint) // the file waits for a worker
	w.run(t.Context(), w.worker(q, "a", nil))
	w.check()
	submit(nil) // it is finished, and the worker is gone
	idle := func(o *fleet.WorkerOptions) { o.UntilEmpty = false }
	w.start("b", idle)
	workers(1)
	submit(fleet.ErrEndpoint)
	second := w.start("c", func(o *fleet.WorkerOptions) { o.UntilEmpty, o.Upload.Endpoint = false, other })
	workers(2)
	w.write("b", 1000, 2)
	submit(nil) // the other worker refuses the files
	w.await("empty", func() bool { return w.status(q).Tasks == 0 })
	w.check()
	if second.Status().Endpoint != other {
		t.Errorf("status %+v, want the endpoint %s", second.Status(), other)
	}
}
