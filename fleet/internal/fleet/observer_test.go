package fleet_test

import (
	"sync"
	"testing"

	"gcsup/fleet/internal/fleet"
	"gcsup/upload"
)

// TestObserver uploads a tree twice, and the second time to an empty queue: all objects exist. The observer of the worker
// gets one last event for each file, and no failure.
func TestObserver(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.write("large", 2<<20, 1)
	w.write("small", 1000, 2)
	var mu sync.Mutex
	ends := map[string]int{}
	var sent int64
	observe := func(o *fleet.WorkerOptions) {
		o.Upload.Observer = func(e upload.Event) {
			mu.Lock()
			defer mu.Unlock()
			sent += e.SentDelta
			if e.Kind.Terminal() {
				ends[e.Kind.String()]++
			}
		}
	}
	for i := range 2 {
		q := w.queue()
		w.submit(q)
		worker := w.worker(q, "a", observe)
		w.run(t.Context(), worker)
		if len(ends) != 1 || ends["done"] != 2*(i+1) || sent != 2<<20+1000 {
			t.Errorf("run %d: last events %v, %d bytes were sent", i, ends, sent)
		}
		if m := worker.Metrics(); m.Files != 2 || m.Bytes != 2<<20+1000 || m.Sent != int64(1-i)*(2<<20+1000) || m.DeadLetters+m.FailedDeliveries != 0 || m.ActiveTasks != 0 {
			t.Errorf("run %d: %+v", i, m)
		}
		w.wipe()
	}
}
