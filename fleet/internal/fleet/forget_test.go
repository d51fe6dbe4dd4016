package fleet_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"gcsup/fleet/internal/fleet"
	"gcsup/internal/require"
)

// TestForget forgets one dead letter and retries another one by their keys.
func TestForget(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for i, name := range []string{"a", "b", "c"} {
		w.write(name, 1000, uint64(i))
	}
	q := w.queue()
	w.submit(q)
	info := must(os.Stat(filepath.Join(w.tree, "b")))
	for _, name := range []string{"a", "b"} {
		require.NoError(t, os.Remove(filepath.Join(w.tree, name)))
	}
	w.run(t.Context(), w.worker(q, "x", func(o *fleet.WorkerOptions) { o.MaxFailures = 1 }))
	keys := map[string]string{}
	if err := q.Failed(t.Context(), func(key string, l fleet.DeadLetter) error {
		keys[l.Task.Files[0].Object] = key
		return nil
	}); err != nil || len(keys) != 2 {
		t.Fatalf("dead letters %v, %v, want 2", keys, err)
	}
	if err := q.Forget(t.Context(), keys["tree/a"]); err != nil {
		t.Error(err)
	}
	if got := w.letters(q); len(got) != 1 || got["tree/b"] == "" {
		t.Errorf("dead letters %v, want b", got)
	}
	for _, key := range []string{keys["tree/a"], "", "a.b", "0123"} {
		if err := q.Forget(t.Context(), key); !errors.Is(err, fleet.ErrNoDeadLetter) {
			t.Errorf("forget %q: error %v, want ErrNoDeadLetter", key, err)
		}
		if _, err := q.Retry(t.Context(), key); !errors.Is(err, fleet.ErrNoDeadLetter) {
			t.Errorf("retry %q: error %v, want ErrNoDeadLetter", key, err)
		}
	}
	w.write("b", 1000, 1)
	require.NoError(t, os.Chtimes(filepath.Join(w.tree, "b"), info.ModTime(), info.ModTime()))
	if added, err := q.Retry(t.Context(), keys["tree/b"]); err != nil || !added {
		t.Errorf("retry: added %t, %v", added, err)
	}
	if err := w.worker(q, "y", nil).Run(t.Context()); err != nil {
		t.Errorf("the fleet is not settled: %v", err)
	}
	if s := w.status(q); s.Done.Files != 2 || s.Failed != 0 {
		t.Errorf("status %+v, want 2 files", s)
	}
	w.check()
}
