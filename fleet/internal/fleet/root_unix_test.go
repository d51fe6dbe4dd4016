//go:build unix

package fleet_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"gcsup/fleet/internal/fleet"
	"gcsup/internal/require"
)

// TestHungRoot replaces a root by a named pipe without a writer, which does not answer, as a directory whose server has died. A
// worker that has started uploads the files in its other root, and ends after a failure. Another worker does not start.
func TestHungRoot(t *testing.T) {
	t.Parallel()
	w, q := submitted(t, nil, map[string]int{"in/a": 1000, "in/gone": 1000})
	hung := filepath.Join(t.TempDir(), "hung")
	require.NoError(t, errors.Join(os.Mkdir(hung, 0o700), os.Mkdir(filepath.Join(hung, "x"), 0o700), os.Remove(filepath.Join(w.tree, "in/gone"))))
	roots := func(o *fleet.WorkerOptions) { o.Roots = []string{hung, w.tree} }
	first := w.worker(q, "first", roots)
	require.NoError(t, errors.Join(os.RemoveAll(hung), syscall.Mkfifo(hung, 0o600)))
	t.Cleanup(func() { // the workers still open it
		if f, err := os.OpenFile(hung, os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil {
			_ = f.Close()
		}
	})
	w.ends(first, fleet.ErrRoot)
	w.check()
	if _, err := fleet.NewWorker(t.Context(), q, w.gcs.Client(), w.options("second", roots)); !errors.Is(err, fleet.ErrRoot) {
		t.Errorf("%v, want ErrRoot", err)
	}
}
