package fleet

import (
	"slices"
	"testing"

	"gcsup/internal/require"
)

// TestLiveWorkers checks which workers must try a missing file. Those that were seen count even after NATS has
// lost the workers in its memory.
func TestLiveWorkers(t *testing.T) {
	t.Parallel()
	ctx, q := t.Context(), newQueue(t)
	w := &Worker{q: q, opts: WorkerOptions{Name: "a"}, seen: map[string]sighting{}}
	check := func(want ...string) {
		t.Helper()
		got := w.liveWorkers(ctx)
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("live workers: %v, want %v", got, want)
		}
	}
	check("a")
	for name, c := range map[string]string{"a": idle, "b": sending, "d": idle, "e": unhealthy} {
		_, err := q.open.Load().workers.PutString(ctx, conditionPrefix+name, c)
		require.NoError(t, err)
	}
	check("a", "b", "d")
	require.NoError(t, q.js.DeleteKeyValue(ctx, q.bucket("workers")))
	check("a", "b", "d")
}

// TestSharing checks with which workers a worker shares a rate.
func TestSharing(t *testing.T) {
	all := map[string]sighting{"a": {condition: sending}, "b": {condition: idle}, "c": {condition: sending}, "d": {condition: idle}}
	for name, want := range map[string][2]int{"a": {0, 2}, "b": {1, 4}, "c": {1, 2}, "d": {3, 4}} {
		if number, workers := sharing(all, name); number != want[0] || workers != want[1] {
			t.Errorf("%s is number %d of %d, want %d of %d", name, number, workers, want[0], want[1])
		}
	}
}
