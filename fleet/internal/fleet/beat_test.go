package fleet

import (
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"gcsup/internal/crowd"
)

// TestBeatRevision publishes beats of a worker, and of another one with its name. Only a beat of the other one ends
// the worker: not a beat whose reply was lost, and not keys that have expired.
func TestBeatRevision(t *testing.T) {
	t.Parallel()
	ctx, q := t.Context(), newQueue(t)
	kv := q.open.Load().workers
	worker := func(run string) *Worker {
		return &Worker{q: q, opts: WorkerOptions{Name: "a"}, run: run, log: slog.New(slog.DiscardHandler), health: new(health)}
	}
	detail := func(run string) []byte {
		data, err := json.Marshal(WorkerStatus{Name: "a", Run: run})
		noError(t, err)
		return data
	}
	w := worker("1")
	noError(t, w.publishDetail(ctx, kv, detail("1")))
	noError(t, w.publishDetail(ctx, kv, detail("1")))

	_, err := kv.Put(ctx, detailPrefix+"a", detail("1"))
	noError(t, err)
	if err := w.publishDetail(ctx, kv, detail("1")); err != nil {
		t.Errorf("after the reply to a beat was lost: %v", err)
	}
	noError(t, kv.Purge(ctx, detailPrefix+"a"))
	if err := w.publishDetail(ctx, kv, detail("1")); err != nil {
		t.Errorf("after the beat has expired: %v", err)
	}

	second := worker("2")
	if err := second.publishDetail(ctx, kv, detail("2")); !errors.Is(err, ErrNameInUse) {
		t.Errorf("another worker with the name: error %v, want ErrNameInUse", err)
	}
	second.leave()
	if _, err := kv.Get(ctx, detailPrefix+"a"); err != nil {
		t.Errorf("the refused worker deleted the keys of the live one: %v", err)
	}
	if err := w.publishDetail(ctx, kv, detail("1")); err != nil {
		t.Errorf("after another worker was refused: %v", err)
	}
	w.leave()
	if _, err := kv.Get(ctx, detailPrefix+"a"); !errors.Is(err, jetstream.ErrKeyNotFound) {
		t.Errorf("the keys of a worker that has left: %v, want none", err)
	}
}

// TestHealthyWorkers checks which workers must try a missing file. Those that were seen count even after NATS has
// lost the workers in its memory.
func TestHealthyWorkers(t *testing.T) {
	t.Parallel()
	ctx, q := t.Context(), newQueue(t)
	w := &Worker{q: q, opts: WorkerOptions{Name: "a"}, seen: map[string]sighting{}}
	check := func(want ...string) {
		t.Helper()
		got := w.healthyWorkers(ctx)
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("healthy workers: %v, want %v", got, want)
		}
	}
	check("a")
	for name, c := range map[string]crowd.Condition{"a": crowd.Unfit, "b": crowd.Sending, "c": crowd.Unfit, "d": crowd.Idle} {
		_, err := q.open.Load().workers.PutString(ctx, conditionPrefix+name, string(c))
		noError(t, err)
	}
	check("a", "b", "d")
	noError(t, q.js.DeleteKeyValue(ctx, q.bucket("workers")))
	check("a", "b", "d")
}
