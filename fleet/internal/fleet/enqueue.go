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
// worker writes the record. submissions are the IDs of the submissions that have the task. before is the record
// of the task.
func (q *Queue) enqueue(ctx context.Context, t *Task, submissions []string, before stored) (added bool, changed int, err error) {
	id := t.ID()
	for {
		if err = q.publish(ctx, t); err == nil {
			r, _ := queuedRecord(t, before.record).joined(submissions)
			written, err := q.putRecord(ctx, id, r, before.revision)
			if err != nil || written {
				return true, 0, err
			}
			if before, err = q.stored(ctx, id); err == nil { // a worker may have finished it
				err = q.join(ctx, t, submissions, before)
			}
			return true, 0, err
		}
		if !errors.Is(err, errQueued) {
			return false, 0, err
		}
		queued, err := q.open.Load().stream.GetLastMsgForSubject(ctx, q.subject(id))
		if err == nil {
			return false, t.changed(queued.Data), q.join(ctx, t, submissions, before)
		}
		if !errors.Is(err, jetstream.ErrMsgNotFound) {
			return false, 0, err
		}
		if before, err = q.stored(ctx, id); err != nil { // a worker has finished it meanwhile
			return false, 0, err
		}
	}
}

// queued returns a task in the queue, or nil if it cannot be read. The error may wrap
// jetstream.ErrMsgNotFound.
func (q *Queue) queued(ctx context.Context, id string) (*Task, error) {
	msg, err := q.open.Load().stream.GetLastMsgForSubject(ctx, q.subject(id))
	if err != nil {
		return nil, err
	}
	t, err := decodeTask(msg.Data)
	if err != nil {
		return nil, nil // a newer version has submitted it, or its worker will report it
	}
	return t, nil
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
		case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil && try < publishTries:
			continue
		}
		return err
	}
}

// publishTries is how often publish tries if there is no acknowledgment within 5 s, the default
// timeout: the election of a leader may take longer.
const publishTries = 3
