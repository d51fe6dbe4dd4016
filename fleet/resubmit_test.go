package fleet_test

import (
	"testing"

	"gcsup/fakegcs"
	"gcsup/fleet"
)

// TestSubmitAfterCancel submits a tree again right after it was canceled, before the worker
// hears of that. The tasks of the second submit stay.
func TestSubmitAfterCancel(t *testing.T) {
	t.Parallel()
	w := newWorld(t, &fakegcs.Options{Rate: 2 << 20})
	w.write("a", 9<<20, 1)
	w.write("b", 9<<20, 2)
	q := w.queue()
	w.submit(q)
	began := make(chan struct{})
	w.afterPuts("", 1, func() { close(began) })
	w.start("a", func(o *fleet.WorkerOptions) { o.UntilEmpty, o.Upload.ChunkSize = false, 256<<10 })
	<-began
	if _, err := q.Cancel(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.write("c", 9<<20, 3)
	w.submit(q)
	w.run(t.Context(), w.worker(q, "b", nil))
	if s := w.status(q); s.Done.Files != 3 || s.Waiting.Files != 0 {
		t.Errorf("status %+v", s)
	}
	w.check()
}
