package fleet_test

import (
	"errors"
	"testing"
	"time"

	"gcsup/fleet/internal/fleet"
)

// TestAckWait checks that the ack wait can be changed only while there are no workers, and that
// MustExist does not create a queue.
func TestAckWait(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	open := func(o fleet.QueueOptions) (*fleet.Queue, error) { return fleet.OpenQueue(t.Context(), w.connect(), o) }
	if _, err := open(fleet.QueueOptions{MustExist: true}); !errors.Is(err, fleet.ErrNoQueue) {
		t.Errorf("a queue that must exist: %v, want ErrNoQueue", err)
	}
	for _, wait := range []time.Duration{0, 4 * time.Second, 0, 5 * time.Second} {
		q := must(open(fleet.QueueOptions{AckWait: wait}))
		if wait != 0 && q.AckWait() != wait {
			t.Errorf("ack wait %v, want %v", q.AckWait(), wait)
		}
	}
	w.start("busy", func(o *fleet.WorkerOptions) { o.UntilEmpty = false })
	q := must(open(fleet.QueueOptions{}))
	for ctx := t.Context(); len(w.status(q).Workers) == 0; pause(ctx, 10*time.Millisecond) {
	}
	if _, err := open(fleet.QueueOptions{AckWait: time.Minute}); !errors.Is(err, fleet.ErrAckWait) {
		t.Errorf("another ack wait beside a worker: %v, want ErrAckWait", err)
	}
	if q := must(open(fleet.QueueOptions{MustExist: true})); q.AckWait() != 5*time.Second {
		t.Errorf("ack wait %v, want that of the queue", q.AckWait())
	}
	for _, bad := range []fleet.QueueOptions{{Fleet: "A b"}, {AckWait: time.Second}, {AckWait: 2 * time.Hour}} {
		if _, err := open(bad); err == nil {
			t.Errorf("%+v is accepted", bad)
		}
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
