package fleet_test

import (
	"fmt"
	"testing"
)

// TestTree uploads a tree with one worker, and submits it again.
func TestTree(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for i := range 40 {
		w.write(fmt.Sprintf("small/%03d", i), 1000+i, uint64(i))
	}
	w.write("large", 9<<20, 1)
	q := w.queue()
	if got := w.submit(q); got.Files != 41 {
		t.Errorf("first submit: %+v, want 41 files", got)
	}
	if got := w.submit(q); got.Files != 0 || got.Queued != 41 {
		t.Errorf("second submit: %+v, want 41 files that are queued", got)
	}
	w.run(t.Context(), w.worker(q, "a", nil))
	w.check()
	if got := w.submit(q); got.Files != 0 || got.Finished != 41 {
		t.Errorf("submit of what is finished: %+v, want 41 files that are finished", got)
	}
}
