package fleet_test

import (
	"context"
	"errors"
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
	if err := w.worker(q, "a", nil).Run(t.Context()); !errors.Is(err, fleet.ErrQueueLost) {
		t.Errorf("after the queue was lost: %v, want ErrQueueLost", err)
	}
	w.submitTo(q, "tree/")
	w.run(t.Context(), w.worker(q, "b", nil))
	empty()
	if err := w.worker(q, "c", nil).Run(t.Context()); err != nil || w.status(q).Done.Files != 1 {
		t.Errorf("all is done: %v, status %+v", err, w.status(q))
	}
	w.check()
}

// TestInterruptedBeforeFirstTask interrupts submits that have put nothing into the queue yet. It is then not known what was
// submitted, even if an earlier submit of the tree had ended.
func TestInterruptedBeforeFirstTask(t *testing.T) {
	t.Parallel()
	w, q := twoFiles(t)
	for i := range 2 {
		ctx, cancel := context.WithCancel(t.Context())
		s := w.submission("tree/")
		s.Jobs = func(func(upload.Job) bool) { cancel() }
		if _, err := fleet.Submit(ctx, q, s); !errors.Is(err, context.Canceled) {
			t.Fatalf("error %v, want that the submit was interrupted", err)
		}
		if err := w.worker(q, "a", nil).Run(t.Context()); !errors.Is(err, fleet.ErrUnknownTotal) {
			t.Errorf("interruption %d: the worker ends with %v, want ErrUnknownTotal", i, err)
		}
		w.submit(q)
		if err := w.worker(q, "b", nil).Run(t.Context()); err != nil {
			t.Errorf("interruption %d: after another submit: %v", i, err)
		}
	}
	w.check()
}

// TestEmptySubmissionAfterInterruption submits a part of a tree and is interrupted, and then submits an empty
// tree. It is still not known what was submitted.
func TestEmptySubmissionAfterInterruption(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.write("a", 2<<20, 1)
	w.write("b", 2<<20, 1)
	q := w.queue()
	ctx, cancel := context.WithCancel(t.Context())
	s := w.submission("tree/")
	jobs := s.Jobs
	s.Jobs = func(yield func(upload.Job) bool) {
		for j := range jobs {
			if !yield(j) {
				return
			}
			w.await("submitted", func() bool { return w.status(q).Tasks == 1 })
			cancel()
		}
	}
	if _, err := fleet.Submit(ctx, q, s); !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v, want that the submit was interrupted", err)
	}
	w.submitOnly(q, "")
	if err := w.worker(q, "a", nil).Run(t.Context()); !errors.Is(err, fleet.ErrUnknownTotal) {
		t.Errorf("error %v, want ErrUnknownTotal", err)
	}
}
