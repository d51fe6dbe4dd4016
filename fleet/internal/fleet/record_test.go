package fleet

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"gcsup/fleet/internal/natsserver"
	"gcsup/internal/require"
)

// newQueue returns a queue on a server of its own.
func newQueue(t *testing.T) *Queue {
	t.Helper()
	server, err := natsserver.Start(natsserver.Options{Dir: t.TempDir()})
	require.NoError(t, err)
	t.Cleanup(server.Close)
	nc, err := server.Connect()
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	q, err := OpenQueue(t.Context(), nc, QueueOptions{})
	require.NoError(t, err)
	return q
}

// read returns the record of a task.
func read(t *testing.T, q *Queue, task *Task) stored {
	t.Helper()
	r, err := q.stored(t.Context(), task.ID())
	require.NoError(t, err)
	return r
}

var quiet = slog.New(slog.DiscardHandler)

// taker returns a function that takes a task from the queue, for a worker that permits one failure.
func taker(t *testing.T, q *Queue, task *Task) func() *delivery {
	w := &Worker{q: q, opts: WorkerOptions{Name: "a", MaxFailures: 2}, log: quiet, health: newHealth(), seen: map[string]sighting{}}
	return func() *delivery {
		t.Helper()
		msg, err := q.next(t.Context(), time.Minute)
		require.NoError(t, err)
		d := w.newDelivery(t.Context(), t.Context(), msg)
		d.task, d.execution = task, &execution{}
		return d
	}
}

// TestMessageWithoutRecord adds a task to the queue whose first file became a dead letter, and then a finished one, as by a
// submit that dies before it writes the record. The failures before do not count, and the next submit writes the record.
func TestMessageWithoutRecord(t *testing.T) {
	t.Parallel()
	ctx, q := t.Context(), newQueue(t)
	task := sampleTask()
	take := taker(t, q, task)
	fail := func(d *delivery, i int) (again bool, _ tally) {
		result := tally{verdict: failed, failed: []outcome{{file: task.Files[i], err: errors.New("no")}}}
		return d.retryLater(quiet, &result), result
	}
	_, _, err := q.enqueue(ctx, task, read(t, q, task))
	require.NoError(t, err)
	fail(take(), 0)
	d := take()
	_, result := fail(d, 0)
	result.finished = task.Files[1:]
	require.NoError(t, d.finish(ctx, quiet, result))
	require.NoError(t, d.acknowledge(ctx))

	require.NoError(t, q.publish(ctx, task))
	again, result := fail(take(), 1)
	if r := read(t, q, task); !again || len(result.elsewhere) > 0 || r.State != stateQueued || r.Attempts.Failures != 1 {
		t.Fatalf("tried again %t, finished elsewhere %v, record %+v, want the first failure", again, result.elsewhere, r.record)
	}
	d = take()
	require.NoError(t, d.finish(ctx, quiet, tally{finished: task.Files}))
	if added, _, err := q.enqueue(ctx, task, read(t, q, task)); added || err != nil || read(t, q, task).State != stateDone {
		t.Errorf("added %t, %v, record %+v, want that the task is finished", added, err, read(t, q, task).record)
	}
	require.NoError(t, d.acknowledge(ctx))

	require.NoError(t, q.publish(ctx, task))
	if added, _, err := q.enqueue(ctx, task, read(t, q, task)); added || err != nil || read(t, q, task).State != stateQueued {
		t.Errorf("added %t, %v, record %+v, want a queued one", added, err, read(t, q, task).record)
	}
	require.NoError(t, take().finish(ctx, quiet, tally{finished: task.Files}))
	require.NoError(t, d.finish(ctx, quiet, tally{failed: []outcome{{file: task.Files[0], err: errors.New("no")}}}))
	if r := read(t, q, task); r.Split {
		t.Errorf("record %+v, want that of the later message", r.record)
	}
}

// TestStuckWorker has a worker whose only task has a read that does not return. It still ends when the queue is empty.
func TestStuckWorker(t *testing.T) {
	t.Parallel()
	ctx, q := t.Context(), newQueue(t)
	w := &Worker{q: q, opts: WorkerOptions{Jobs: 1, UntilEmpty: true}, log: quiet}
	w.hung.Store(1)
	_, err := q.open.Load().records.PutString(ctx, submissionPrefix+"0", "{}")
	require.NoError(t, err)
	slots := make(chan struct{}, 1)
	slots <- struct{}{}
	if err := w.take(ctx, slots, nil); !errors.Is(err, ErrUnknownTotal) {
		t.Errorf("the worker ends with %v, want ErrUnknownTotal", err)
	}
}

// TestFailureOfFinishedTask fails a task that another worker has finished, but not acknowledged yet. The task stays
// finished.
func TestFailureOfFinishedTask(t *testing.T) {
	t.Parallel()
	ctx, q := t.Context(), newQueue(t)
	task := sampleTask()
	take := taker(t, q, task)
	for range 2 { // a second submit is another message
		_, _, err := q.enqueue(ctx, task, read(t, q, task))
		require.NoError(t, err)
		failed := tally{verdict: failed, failed: []outcome{{file: task.Files[0], err: errors.New("no")}}}
		if !take().retryLater(quiet, &failed) || read(t, q, task).State != stateQueued {
			t.Fatalf("record %+v after a failure, want that the task is tried again", read(t, q, task).record)
		}
		d := take()
		require.NoError(t, d.finish(ctx, quiet, tally{finished: task.Files})) // the acknowledgment is lost
		d.retryLater(quiet, &failed)
		if r := read(t, q, task); r.State != stateDone || !d.gone() {
			t.Errorf("record %+v after a failure of the finished task, in the queue %t", r.record, !d.gone())
		}
	}
}
