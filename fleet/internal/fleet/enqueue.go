package fleet

import (
	"bytes"
	"context"
	"errors"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
)

// enqueue adds a task to the queue. If the task is in the queue already, added is
// false, and changed is the number of its files that differ from those in the queue.
// It writes the record of the task after the message. If it dies in between, the
// worker or the next submit writes the record. before is the record of the task.
func (q *Queue) enqueue(ctx context.Context, t *Task, before stored) (added bool, changed int, err error) {
	for {
		err = q.publish(ctx, t)
		if err == nil {
			// If the record has changed, a worker has written it, and knows more.
			_, err = q.putRecord(ctx, t.ID(), queuedRecord(t, before.record), before.revision)
			return true, 0, err
		}
		if !errors.Is(err, errQueued) {
			return false, 0, err
		}
		queued, err := q.open.Load().stream.GetLastMsgForSubject(ctx, q.subject(t.ID()))
		if err == nil {
			if before.State == "" || before.State == stateDone && !before.finishedSince(queued.Time) {
				// A submit has died, or not got the reply of the server, before it could write the record.
				_, err = q.putRecord(ctx, t.ID(), queuedRecord(t, before.record), before.revision)
			}
			return false, t.changed(queued.Data), err
		}
		if !errors.Is(err, jetstream.ErrMsgNotFound) {
			return false, 0, err
		}
		if before, err = q.stored(ctx, t.ID()); err != nil { // a worker has finished it meanwhile
			return false, 0, err
		}
	}
}

// errQueued means that the task is in the queue already.
var errQueued = errors.New("the task is in the queue")

// publish adds a task to the queue. If the task is in the queue already, the error is
// errQueued.
func (q *Queue) publish(ctx context.Context, t *Task) error {
	data, err := t.encode()
	if err != nil {
		return err
	}
	for try := 1; ; try++ {
		_, err = q.js.Publish(ctx, q.subject(t.ID()), data)
		api, ok := errors.AsType[*jetstream.APIError](err)
		switch {
		case ok && strings.Contains(api.Description, "maximum messages per subject"):
			if try == 1 {
				return errQueued
			}
			// The reply to an earlier try was lost, or another process added the task.
			queued, err := q.open.Load().stream.GetLastMsgForSubject(ctx, q.subject(t.ID()))
			switch {
			case errors.Is(err, jetstream.ErrMsgNotFound):
				continue // a worker finished it meanwhile; if it was this task, it finds the objects
			case err == nil && !bytes.Equal(queued.Data, data):
				return errQueued
			}
			return err
		case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil && try < publishAttempts:
			continue
		}
		return err
	}
}

// publishAttempts is how often publish tries if there is no acknowledgment within 5 s, the default
// timeout: the election of a leader may take longer.
const publishAttempts = 3
