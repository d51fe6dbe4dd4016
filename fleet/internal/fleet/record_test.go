package fleet

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

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

// overtaken is a bucket in which another process writes before the first write of this one.
type overtaken struct {
	jetstream.KeyValue
	other func()
}

func (o *overtaken) overtake() {
	if other := o.other; other != nil {
		o.other = nil
		other()
	}
}

func (o *overtaken) Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	o.overtake()
	return o.KeyValue.Update(ctx, key, value, revision)
}

func (o *overtaken) Purge(ctx context.Context, key string, opts ...jetstream.KVDeleteOpt) error {
	o.overtake()
	return o.KeyValue.Purge(ctx, key, opts...)
}

// overtake returns q as another process sees it, before whose first write of a record other runs.
func (q *Queue) overtake(other func()) *Queue {
	p := *q.open.Load()
	p.records = &overtaken{p.records, other}
	o := &Queue{js: q.js, opts: q.opts}
	o.open.Store(&p)
	return o
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

// TestSubmitWhileFinishing changes the record of a task while its worker finishes it. The failure of the
// task becomes a dead letter if, and only if, the task is not superseded at the end.
func TestSubmitWhileFinishing(t *testing.T) {
	t.Parallel()
	ctx, q := t.Context(), newQueue(t)
	task := sampleTask()
	failed := tally{verdict: failed, failed: []outcome{{file: task.Files[0], err: errors.New("no")}}}
	var msg jetstream.Msg
	finish := func(other func()) {
		t.Helper()
		d := &delivery{w: &Worker{q: q.overtake(other)}, msg: msg, id: task.ID(), task: task}
		noError(t, d.finish(ctx, slog.New(slog.DiscardHandler), failed))
	}
	letters := func() (n int) {
		t.Helper()
		noError(t, q.Failed(ctx, func(string, DeadLetter) error { n++; return nil }))
		return n
	}
	submit := func() {
		t.Helper()
		_, _, err := q.enqueue(ctx, task, []string{"a"}, read(t, q, task))
		noError(t, err)
		msg, err = q.next(ctx, time.Minute)
		noError(t, err)
	}
	submit()

	var now contents // a group with the file that fails
	now.add(&Task{Settings: task.Settings, Files: append([]File{task.Files[0]}, File{Object: "z"})})
	finish(func() { noError(t, q.leave(ctx, task.ID(), "a", now)) })
	if r, _, err := q.record(ctx, task.ID()); err != nil || r.State != "" || letters() != 0 {
		t.Errorf("superseded meanwhile: record %+v, %v, %d dead letters, want none", r, err, letters())
	}

	join := func(submission string) {
		t.Helper()
		noError(t, q.join(ctx, task, []string{submission}, read(t, q, task)))
	}
	submit()
	noError(t, q.leave(ctx, task.ID(), "a", now))
	finish(func() { join("b") })
	if r, _, err := q.record(ctx, task.ID()); err != nil || r.State != stateDone || !slices.Equal(r.Submissions, []string{"b"}) || letters() != 1 {
		t.Errorf("submitted again meanwhile: record %+v, %v, %d dead letters, want that it is done and one", r, err, letters())
	}
}

// TestFailureOfFinishedTask fails a task that another worker has finished, but not acknowledged yet. The task stays
// finished.
func TestFailureOfFinishedTask(t *testing.T) {
	t.Parallel()
	ctx, q := t.Context(), newQueue(t)
	task := sampleTask()
	log := slog.New(slog.DiscardHandler)
	w := &Worker{q: q, opts: WorkerOptions{Name: "a", Tries: 2}, log: log, health: new(health), seen: map[string]sighting{}}
	take := func() *delivery {
		t.Helper()
		msg, err := q.next(ctx, time.Minute)
		noError(t, err)
		d := w.newDelivery(ctx, msg)
		d.task, d.execution = task, &execution{}
		return d
	}
	for range 2 { // a second submit is another message
		_, _, err := q.enqueue(ctx, task, []string{"a"}, read(t, q, task))
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

// unacknowledgedTask is a message whose acknowledgment is lost.
type unacknowledgedTask struct{ jetstream.Msg }

func (unacknowledgedTask) DoubleAck(context.Context) error { return context.DeadlineExceeded }

// TestSupersededTaskWhoseAckIsLost finishes a superseded task whose acknowledgment is lost. The next worker
// finds it superseded, too: its files do not count, and a failure is excused.
func TestSupersededTaskWhoseAckIsLost(t *testing.T) {
	t.Parallel()
	ctx, q := t.Context(), newQueue(t)
	task := sampleTask()
	_, _, err := q.enqueue(ctx, task, []string{"a"}, stored{})
	noError(t, err)
	noError(t, q.leave(ctx, task.ID(), "a", contents{}))
	msg, err := q.next(ctx, time.Minute)
	noError(t, err)
	done := tally{finished: task.Files}
	d := &delivery{w: &Worker{q: q}, msg: unacknowledgedTask{msg}, id: task.ID(), task: task}
	log := slog.New(slog.DiscardHandler)
	if err := d.finish(ctx, log, done); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("finish = %v, want that it was not acknowledged", err)
	}
	if r := read(t, q, task); !r.Superseded {
		t.Errorf("record %+v, want that it is superseded", r.record)
	}
	d.msg = msg
	noError(t, d.finish(ctx, log, done))
	if r := read(t, q, task); r.State != "" {
		t.Errorf("record %+v, want none", r.record)
	}
}

// TestJoinAfterAnotherWrite submits a superseded task while a worker records a failure of it. The task is no
// longer superseded.
func TestJoinAfterAnotherWrite(t *testing.T) {
	t.Parallel()
	ctx, q := t.Context(), newQueue(t)
	task := sampleTask()
	_, _, err := q.enqueue(ctx, task, []string{"a"}, stored{})
	noError(t, err)
	noError(t, q.leave(ctx, task.ID(), "a", contents{}))
	other := q.overtake(func() {
		r, revision, err := q.record(ctx, task.ID())
		noError(t, err)
		r.Attempts.Failures++
		_, err = q.putRecord(ctx, task.ID(), r, revision)
		noError(t, err)
	})
	added, changed, err := other.enqueue(ctx, task, []string{"b"}, read(t, q, task))
	if err != nil || added || changed != 0 {
		t.Errorf("added %t, %d changed, %v, want that the task is in the queue", added, changed, err)
	}
	if r, _, err := q.record(ctx, task.ID()); err != nil || r.Superseded || r.Attempts.Failures != 1 || !slices.Equal(r.Submissions, []string{"b"}) {
		t.Errorf("record %+v, %v, want the failure and the second submission", r, err)
	}
}

// TestJoinWhileLeaving submits a finished task with another submission while the only one leaves it. Its record
// stays.
func TestJoinWhileLeaving(t *testing.T) {
	t.Parallel()
	ctx, q := t.Context(), newQueue(t)
	task := sampleTask()
	_, err := q.putRecord(ctx, task.ID(), record{State: stateDone, Fingerprint: fingerprint(task.Files), Submissions: []string{"a"}}, 0)
	noError(t, err)
	other := q.overtake(func() {
		if finished, err := q.joinFinished(ctx, task, []string{"b"}, read(t, q, task)); err != nil || !finished {
			t.Errorf("finished %t, %v", finished, err)
		}
	})
	noError(t, other.leave(ctx, task.ID(), "a", contents{}))
	if r, _, err := q.record(ctx, task.ID()); err != nil || r.State != stateDone || !slices.Equal(r.Submissions, []string{"b"}) {
		t.Errorf("record %+v, %v, want that of the second submission", r, err)
	}
}
