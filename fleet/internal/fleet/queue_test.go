package fleet_test

import (
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"gcsup/fleet/internal/fleet"
)

// TestLateAcknowledgment wipes JetStream and then acknowledges an earlier task. The task that now has
// its sequence number stays in the queue.
func TestLateAcknowledgment(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.write("a", 2<<20, 1)
	take := func() jetstream.Msg {
		t.Helper()
		w.submit(w.queue())
		js := must(jetstream.New(w.connect()))
		stream := must(js.Stream(t.Context(), "gcsup-default"))
		var names []string
		for name := range stream.ConsumerNames(t.Context()).Name() {
			names = append(names, name)
		}
		if len(names) != 1 {
			t.Fatalf("the stream has the consumers %q, want one", names)
		}
		consumer := must(stream.Consumer(t.Context(), names[0]))
		return must(consumer.Next(jetstream.FetchMaxWait(5 * time.Second)))
	}
	late := take()
	w.wipe()
	take()
	if err := late.DoubleAck(t.Context()); err == nil {
		t.Error("the acknowledgment of a deleted task succeeds")
	}
	s := must(w.queue().Status(t.Context()))
	if s.Tasks != 1 {
		t.Errorf("%d tasks are in the queue, want the one that was submitted last", s.Tasks)
	}
}

// TestTasksOfLostQueue wipes JetStream while a command waits until the queue is empty. Then a worker
// creates an empty queue. The wait ends with an error.
func TestTasksOfLostQueue(t *testing.T) {
	t.Parallel()
	w, q := submitted(t, nil, map[string]int{"a": 1000})
	if n, err := q.Tasks(t.Context()); n != 1 || err != nil {
		t.Fatalf("%d tasks, %v, want 1", n, err)
	}
	w.wipe()
	w.queue()
	if n, err := q.Tasks(t.Context()); !errors.Is(err, fleet.ErrQueueLost) {
		t.Errorf("%d tasks, %v, want ErrQueueLost", n, err)
	}
}
