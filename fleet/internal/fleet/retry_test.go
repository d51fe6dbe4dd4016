package fleet_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gcsup/fleet/internal/fleet"
	"gcsup/upload"
)

// TestRetryOfOtherEndpoint retries files that were submitted to another endpoint than that of the files in the queue.
// They stay dead letters, because workers would end.
func TestRetryOfOtherEndpoint(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.write("a", 1000, 1)
	q := w.queue()
	w.submit(q)
	if err := os.Remove(filepath.Join(w.tree, "a")); err != nil {
		t.Fatal(err)
	}
	w.run(t.Context(), w.worker(q, "x", func(o *fleet.WorkerOptions) { o.Tries = 1 }))
	w.write("b", 1000, 2)
	other := w.otherEndpoint()
	s := w.submission("copy/")
	s.Uploader = must(upload.New(w.gcs.Client(), &upload.Options{Endpoint: other}))
	must(fleet.Submit(t.Context(), q, s))
	refused := func(added bool, err error) {
		t.Helper()
		if added || !errors.Is(err, fleet.ErrEndpoint) || !strings.Contains(err.Error(), "submit them again with that --endpoint") || !strings.Contains(err.Error(), "gcsup-fleet cancel") {
			t.Errorf("added %t, %v, want ErrEndpoint and what to do", added, err)
		}
	}
	n, err := q.RetryFailed(t.Context())
	refused(n > 0, err)
	var key string
	if err := q.Failed(t.Context(), func(k string, _ fleet.DeadLetter) error { key = k; return nil }); err != nil {
		t.Fatal(err)
	}
	refused(q.Retry(t.Context(), key))
	err = w.worker(q, "w", func(o *fleet.WorkerOptions) { o.Upload.Endpoint = other }).Run(t.Context())
	if s := w.status(q); !errors.Is(err, fleet.ErrFilesFailed) || s.Done.Files != 1 || s.Failed != 1 {
		t.Errorf("error %v, status %+v, want one finished and one failed file", err, s)
	}
}

// TestRetryDamaged retries a file, and a message that was damaged. The latter stays a dead letter, because its files are
// not known.
func TestRetryDamaged(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.write("a", 1000, 1)
	q := w.queue()
	w.submit(q)
	if err := os.Remove(filepath.Join(w.tree, "a")); err != nil {
		t.Fatal(err)
	}
	must(w.connect().Request("gcsup.default.task.00ff", []byte("damaged"), 5e9))
	w.run(t.Context(), w.worker(q, "x", func(o *fleet.WorkerOptions) { o.Tries = 1 }))
	for range 2 {
		if added, err := q.Retry(t.Context(), "00ff"); added || !errors.Is(err, fleet.ErrDamagedLetter) {
			t.Errorf("added %t, %v, want ErrDamagedLetter", added, err)
		}
	}
	if n, err := q.RetryFailed(t.Context()); n != 1 || !errors.Is(err, fleet.ErrDamagedLetter) {
		t.Errorf("%d files, %v, want one and ErrDamagedLetter", n, err)
	}
	if s := w.status(q); s.Failed != 1 || s.Tasks != 1 {
		t.Errorf("status %+v, want one dead letter and one task", s)
	}
}
