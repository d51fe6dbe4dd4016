package fleet_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"gcsup/fleet/internal/fleet"
	"gcsup/internal/require"
)

// TestRetryDamaged retries a file, and a message that was damaged. The latter stays a dead letter, because its files are
// not known.
func TestRetryDamaged(t *testing.T) {
	t.Parallel()
	w, q := submitted(t, nil, map[string]int{"a": 1000})
	require.NoError(t, os.Remove(filepath.Join(w.tree, "a")))
	must(w.connect().Request("gcsup.default.task3.00ff", []byte("damaged"), 5e9))
	w.run(t.Context(), w.worker(q, "x", func(o *fleet.WorkerOptions) { o.MaxFailures = 1 }))
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

// TestMeasure checks that a worker measures the length of the queue and the number of dead letters, also after one was
// deleted.
func TestMeasure(t *testing.T) {
	t.Parallel()
	w, q := submitted(t, nil, map[string]int{"a": 1000, "gone": 2 << 20})
	require.NoError(t, os.Remove(filepath.Join(w.tree, "gone")))
	must(w.connect().Request("gcsup.default.task3.00ff", []byte("damaged"), 5e9))
	v := w.start("a", func(o *fleet.WorkerOptions) { o.MissingFor = time.Hour })
	measured := func(letters uint64) func() bool {
		return func() bool { m := v.Metrics(); return m.QueuedTasks == 1 && m.Letters == letters }
	}
	w.await("measured", measured(1))
	require.NoError(t, q.Forget(t.Context(), "00ff"))
	w.await("measured again", measured(0))
}
