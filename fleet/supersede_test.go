package fleet_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
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
