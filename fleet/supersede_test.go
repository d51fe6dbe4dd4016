package fleet_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"gcsup/fleet"
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

// submitOnly submits some of the files of the tree.
func (w *world) submitOnly(q *fleet.Queue, name string, files ...string) fleet.Submitted {
	w.t.Helper()
	s := w.submission("tree/")
	s.Name = name
	jobs := s.Jobs
	s.Jobs = func(yield func(upload.Job) bool) {
		for j := range jobs {
			if slices.Contains(files, filepath.Base(j.Path)) && !yield(j) {
				return
			}
		}
	}
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
	w := newWorld(t, nil)
	w.write("x", 2<<20, 1)
	w.write("y", 2<<20, 2)
	q := w.queue()
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
	w := newWorld(t, nil)
	w.write("x", 2<<20, 1)
	w.write("y", 2<<20, 2)
	q := w.queue()
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
	w := newWorld(t, nil)
	w.write("x", 2<<20, 1)
	w.write("y", 2<<20, 2)
	q := w.queue()
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
