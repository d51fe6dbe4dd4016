package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"gcsup/fleet/internal/fleet"
	"gcsup/upload"
)

// twoFiles returns a world whose tree has the files x and y, and its queue.
func twoFiles(t *testing.T) (*world, *fleet.Queue) {
	t.Helper()
	w := newWorld(t, nil)
	w.write("x", 2<<20, 1)
	w.write("y", 2<<20, 2)
	return w, w.queue()
}

// eachJob makes s submit the jobs for which keep returns true. keep may change the job.
func eachJob(s *fleet.Submission, keep func(*upload.Job) bool) {
	jobs := s.Jobs
	s.Jobs = func(yield func(upload.Job) bool) {
		for j := range jobs {
			if keep(&j) && !yield(j) {
				return
			}
		}
	}
}

// submitOnly submits some of the files of the tree.
func (w *world) submitOnly(q *fleet.Queue, name string, files ...string) fleet.Submitted {
	w.t.Helper()
	s := w.submission("tree/")
	s.Name = name
	eachJob(&s, func(j *upload.Job) bool { return slices.Contains(files, filepath.Base(j.Path)) })
	return must(fleet.Submit(w.t.Context(), q, s))
}

// TestEmptySubmission submits a tree that is empty, because it is not mounted. What was submitted before still
// counts.
func TestEmptySubmission(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.write("a", 1000, 1)
	q := w.queue()
	w.submitTo(q, "tree/")
	empty := func() {
		t.Helper()
		s := w.submission("tree/")
		s.Ledger, s.Jobs = w.ledger(), func(func(upload.Job) bool) {}
		must(fleet.Submit(t.Context(), q, s))
	}
	empty()
	if s := w.status(q); s.Waiting.Files != 1 {
		t.Errorf("%d files wait, want 1", s.Waiting.Files)
	}
	w.wipe()
	q = w.queue()
	empty()
	w.ends(w.worker(q, "a", nil), fleet.ErrQueueLost)
	w.submitTo(q, "tree/")
	w.run(t.Context(), w.worker(q, "b", nil))
	empty()
	if err := w.worker(q, "c", nil).Run(t.Context()); err != nil || w.status(q).Done.Files != 1 {
		t.Errorf("all is done: %v, status %+v", err, w.status(q))
	}
	w.check()
}

// TestInterruptedSubmission interrupts a submit when it has put a task into the queue, and another one, of a tree that is
// finished, before it has done so. Then the tree is empty. It is not known what was submitted until it is submitted again.
func TestInterruptedSubmission(t *testing.T) {
	t.Parallel()
	w, q := twoFiles(t)
	for _, tasks := range []uint64{1, 0} {
		ctx, cancel := context.WithCancel(t.Context())
		s := w.submission("tree/")
		jobs := s.Jobs
		s.Jobs = func(yield func(upload.Job) bool) {
			for j := range jobs {
				if tasks > 0 && yield(j) {
					w.await("submitted", func() bool { return w.status(q).Tasks == tasks })
				}
				cancel()
			}
		}
		if _, err := fleet.Submit(ctx, q, s); !errors.Is(err, context.Canceled) {
			t.Fatalf("error %v, want that the submit was interrupted", err)
		}
		w.submitOnly(q, "")
		w.ends(w.worker(q, fmt.Sprint("a", tasks), nil), fleet.ErrUnknownTotal)
		w.submit(q)
		w.ends(w.worker(q, fmt.Sprint("b", tasks), nil), nil)
	}
	w.check()
}
