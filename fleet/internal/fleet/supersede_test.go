package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"gcsup/fleet/internal/fleet"
	"gcsup/upload"
)

// TestCountsAfterSecondSubmit submits a tree of small files, changes it and submits it again, before and
// after a worker has finished. Each file counts once.
func TestCountsAfterSecondSubmit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for i := range 20 {
		w.write(fmt.Sprintf("small-%02d", i), 1000, uint64(i))
	}
	q := w.queue()
	count := func(when string, done, waiting int) {
		t.Helper()
		if s := w.status(q); s.Done.Files != done || s.Waiting.Files != waiting || s.Done.Bytes != int64(done)*1000 || s.Failed != 0 {
			t.Errorf("%s: %d files are done (%d bytes), %d wait, %d failed, want %d done and %d waiting", when, s.Done.Files, s.Done.Bytes, s.Waiting.Files, s.Failed, done, waiting)
		}
	}
	w.submit(q)
	w.write("new-1", 1000, 100)
	w.submit(q)
	count("submitted twice", 0, 21)
	if err := w.worker(q, "a", nil).Run(t.Context()); err != nil {
		t.Error(err)
	}
	count("finished", 21, 0)
	w.write("new-2", 1000, 101)
	if err := os.Remove(filepath.Join(w.tree, "small-07")); err != nil {
		t.Fatal(err)
	}
	w.submit(q)
	count("submitted again", 0, 21)
	if err := w.worker(q, "a", nil).Run(t.Context()); err != nil {
		t.Error(err)
	}
	count("finished again", 21, 0)
	w.check()
}

// TestFileRemovedBetweenSubmits submits a tree again after a file of a queued group was deleted. The
// file is not part of the second submission, and does not fail.
func TestFileRemovedBetweenSubmits(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for i := range 5 {
		w.write(fmt.Sprintf("small-%d", i), 1000, uint64(i))
	}
	q := w.queue()
	w.submit(q)
	if err := os.Remove(filepath.Join(w.tree, "small-3")); err != nil {
		t.Fatal(err)
	}
	w.submit(q)
	if err := w.worker(q, "a", nil).Run(t.Context()); err != nil {
		t.Error(err)
	}
	if s := w.status(q); s.Done.Files != 4 || s.Failed != 0 {
		t.Errorf("status %+v, want 4 files", s)
	}
	w.check()
}

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

// failAll runs a worker after files were changed, and checks that exactly these become dead letters.
func (w *world) failAll(q *fleet.Queue, files ...string) {
	w.t.Helper()
	for _, name := range files {
		w.write(name, 5, 77)
	}
	if err := w.worker(q, "w", func(o *fleet.WorkerOptions) { o.Tries = 1 }).Run(w.t.Context()); !errors.Is(err, fleet.ErrFilesFailed) {
		w.t.Errorf("error %v, want ErrFilesFailed", err)
	}
	got := w.letters(q)
	for _, name := range files {
		if got["tree/"+name] != "stale_copy" {
			w.t.Errorf("dead letters %v, want %s", got, name)
		}
	}
	if len(got) != len(files) {
		w.t.Errorf("dead letters %v, want those of %v", got, files)
	}
}

// TestFileOfTwoSubmissions submits a file with two submissions, and then one of them without the file. The other
// one still has it: it counts, and its failure is reported.
func TestFileOfTwoSubmissions(t *testing.T) {
	t.Parallel()
	w, q := twoFiles(t)
	w.submitOnly(q, "a", "x", "y")
	w.submitOnly(q, "b", "x")
	w.submitOnly(q, "a", "y")
	if s := w.status(q); s.Waiting.Files != 2 {
		t.Errorf("%d files wait, want both", s.Waiting.Files)
	}
	w.failAll(q, "x")
}

// TestFinishedFileOfTwoSubmissions is like TestFileOfTwoSubmissions, for a file that is finished.
func TestFinishedFileOfTwoSubmissions(t *testing.T) {
	t.Parallel()
	w, q := twoFiles(t)
	w.submitOnly(q, "a", "x", "y")
	w.run(t.Context(), w.worker(q, "w", nil))
	if got := w.submitOnly(q, "b", "x"); got.Finished != 1 {
		t.Errorf("submitted %+v, want one file that is finished", got)
	}
	w.submitOnly(q, "a", "y")
	if s := w.status(q); s.Done.Files != 2 {
		t.Errorf("%d files are done, want both", s.Done.Files)
	}
	w.submitOnly(q, "b", "y")
	if s := w.status(q); s.Done.Files != 1 {
		t.Errorf("%d files are done, want the one that a submission has", s.Done.Files)
	}
}

// TestFileBackInSubmission submits a tree without a file and then with it. Its failure is reported.
func TestFileBackInSubmission(t *testing.T) {
	t.Parallel()
	w, q := twoFiles(t)
	w.submitOnly(q, "", "x", "y")
	w.submitOnly(q, "", "y")
	if s := w.status(q); s.Waiting.Files != 1 {
		t.Errorf("%d files wait, want 1", s.Waiting.Files)
	}
	w.submitOnly(q, "", "x", "y")
	if s := w.status(q); s.Waiting.Files != 2 {
		t.Errorf("%d files wait, want both", s.Waiting.Files)
	}
	w.failAll(q, "x")
}

// TestFileNotSeenByLastSubmit submits a tree again when a file of a queued task cannot be seen, because of a filter,
// an empty mount, or a directory that cannot be read. The failure of the file is reported.
func TestFileNotSeenByLastSubmit(t *testing.T) {
	t.Parallel()
	for name, again := range map[string]func(w *world, q *fleet.Queue){
		"filter": func(w *world, q *fleet.Queue) { w.submitOnly(q, "", "y", "small-1") },
		"refused": func(w *world, q *fleet.Queue) {
			s := w.submission("tree/")
			eachJob(&s, func(j *upload.Job) bool {
				if name := filepath.Base(j.Path); name == "x" || name == "small-2" {
					j.Err = fs.ErrPermission
				}
				return true
			})
			s.Report = nil
			if got := must(fleet.Submit(t.Context(), q, s)); got.Failed != 2 {
				t.Errorf("submitted %+v, want that two files were refused", got)
			}
		},
		"empty": func(w *world, q *fleet.Queue) { w.submitOnly(q, "") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, q := twoFiles(t)
			w.write("small-1", 1000, 3)
			w.write("small-2", 1000, 4)
			w.submit(q)
			again(w, q)
			w.failAll(q, "x", "small-2")
		})
	}
}

// TestFileChangedBetweenSubmits changes a file of a queued group, adds another one, and submits the tree again. The
// first group fails for the changed file, after the second one has finished it. It is not reported.
func TestFileChangedBetweenSubmits(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.write("small-1", 1000, 1)
	w.write("small-2", 1000, 2)
	q := w.queue()
	w.submit(q)
	w.write("small-2", 1001, 3)
	w.write("small-3", 1000, 4)
	w.submit(q)
	// The first group waits after its failure, and is delivered last.
	if err := w.worker(q, "a", func(o *fleet.WorkerOptions) { o.Jobs, o.Tries = 1, 2 }).Run(t.Context()); err != nil {
		t.Errorf("the fleet is not settled: %v", err)
	}
	if s := w.status(q); s.Done.Files != 3 || s.Failed != 0 {
		t.Errorf("status %+v, want 3 files", s)
	}
	w.check()
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
