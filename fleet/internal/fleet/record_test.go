package fleet

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"gcsup/fleet/internal/natsserver"
)

// newQueue returns a queue on a server of its own.
func newQueue(t *testing.T) *Queue {
	t.Helper()
	server, err := natsserver.Start(natsserver.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	nc, err := server.Connect()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	q, err := OpenQueue(t.Context(), nc, QueueOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// noError stops the test if err is not nil.
func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// read returns the record of a task.
func read(t *testing.T, q *Queue, task *Task) stored {
	t.Helper()
	r, err := q.stored(t.Context(), task.ID())
	noError(t, err)
	return r
}

// TestFailureOfFinishedTask fails a task that another worker has finished, but not acknowledged yet. The task stays
// finished.
func TestFailureOfFinishedTask(t *testing.T) {
	t.Parallel()
	ctx, q := t.Context(), newQueue(t)
	task := sampleTask()
	log := slog.New(slog.DiscardHandler)
	w := &Worker{q: q, opts: WorkerOptions{Name: "a", MaxFailures: 2}, log: log, health: newHealth(), seen: map[string]sighting{}}
	take := func() *delivery {
		t.Helper()
		msg, err := q.next(ctx, time.Minute)
		noError(t, err)
		d := w.newDelivery(ctx, msg)
		d.task, d.execution = task, &execution{}
		return d
	}
	for range 2 { // a second submit is another message
		_, _, err := q.enqueue(ctx, task, read(t, q, task))
		noError(t, err)
		failed := tally{verdict: failed, failed: []outcome{{file: task.Files[0], err: errors.New("no")}}}
		if !take().retryLater(log, &failed) || read(t, q, task).State != stateQueued {
			t.Fatalf("record %+v after a failure, want that the task is tried again", read(t, q, task).record)
		}
		d := take()
		noError(t, d.finish(ctx, log, tally{finished: task.Files})) // the acknowledgment is lost
		d.retryLater(log, &failed)
		if r := read(t, q, task); r.State != stateDone || !d.gone() {
			t.Errorf("record %+v after a failure of the finished task, in the queue %t", r.record, !d.gone())
		}
	}
}
