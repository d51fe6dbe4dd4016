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
	w, q := submitted(t, nil, map[string]int{"a": 1000, "b": 1000, "c": 1000})
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
	require.NoError(t, q.Forget(t.Context(), keys["tree/a"]))
	w.wantLetters(q, map[string]string{"tree/b": "no_input"})
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
	w.ends(w.worker(q, "y", nil), nil)
	if s := w.status(q); s.Done.Files != 2 || s.Failed != 0 {
		t.Errorf("status %+v, want 2 files", s)
	}
	w.check()
}
