package fleet_test

import (
	"strings"
	"testing"
	"time"

	"gcsup/fleet/internal/fleet"
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
	elsewhere := func(o *fleet.WorkerOptions) { o.Upload.Endpoint, o.MaxFailures, o.UntilEmpty = other, 1, false }
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
