package fleet_test

import (
	"fmt"
	"sync"
	"testing"

	"gcsup/fleet/internal/fleet"
)

// TestCancelWhileATaskFails cancels the queue while a worker has a task, which then fails before the worker reads the
// cancellation. The task is not counted any more.
func TestCancelWhileATaskFails(t *testing.T) {
	t.Parallel()
	for _, failures := range []int{1, 5} { // the failure would make a dead letter, or return the task
		t.Run(fmt.Sprint(failures), func(t *testing.T) {
			t.Parallel()
			w, q := twoFiles(t)
			w.submitTo(q, "tree/")
			for _, name := range []string{"x", "y"} {
				w.write(name, 5, 77)
			}
			cancel := sync.OnceFunc(func() { must(q.Cancel(t.Context())) })
			worker := w.worker(q, "w", func(o *fleet.WorkerOptions) {
				o.MaxFailures = failures
				o.ContentType = func(string) string { cancel(); return "" }
			})
			w.ends(worker, nil)
			if s := w.status(q); s.Waiting.Files+s.Done.Files+s.Failed != 0 {
				t.Errorf("%d files wait, %d are done, %d failed, want that all are canceled", s.Waiting.Files, s.Done.Files, s.Failed)
			}
		})
	}
}
