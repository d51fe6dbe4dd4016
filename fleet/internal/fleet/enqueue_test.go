package fleet

import (
	"context"
	"errors"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"gcsup/internal/require"
)

// unacknowledged is a JetStream whose first acknowledgment of a message does not arrive. before is called
// instead of the first Publish, and after, if it is not nil, after the second one.
type unacknowledged struct {
	jetstream.JetStream
	before, after func()
}

func (u *unacknowledged) Publish(ctx context.Context, subject string, data []byte, opts ...jetstream.PublishOpt) (*jetstream.PubAck, error) {
	if before := u.before; before != nil {
		u.before = nil
		before()
		return nil, context.DeadlineExceeded
	}
	ack, err := u.JetStream.Publish(ctx, subject, data, opts...)
	if after := u.after; after != nil {
		u.after = nil
		after()
	}
	return ack, err
}

// TestPublishTwice loses the reply to a message, and checks what the second try finds.
func TestPublishTwice(t *testing.T) {
	t.Parallel()
	ctx, q := t.Context(), newQueue(t)
	real, task, other := q.js, sampleTask(), sampleTask()
	other.Files[0].Size++
	for name, c := range map[string]struct {
		first *Task // that the server gets instead of, or as, the first try
		done  bool  // a worker finishes it when the server has refused the second try
		want  error
	}{
		"the message arrived":                 {task, false, nil},
		"another one arrived":                 {other, false, errQueued},
		"no message arrived":                  {nil, false, nil},
		"another one arrived and is finished": {other, true, nil},
		"the message arrived and is finished": {task, true, nil},
	} {
		purge := func() {
			require.NoError(t, q.open.Load().stream.Purge(ctx))
		}
		purge()
		lossy := &unacknowledged{JetStream: real, before: func() {
			if c.first == nil {
				return
			}
			data, err := c.first.encode()
			if err == nil {
				_, err = real.Publish(ctx, q.subject(task.ID()), data)
			}
			require.NoError(t, err)
		}}
		if c.done {
			lossy.after = purge
		}
		q.js = lossy
		if err := q.publish(ctx, task); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
		queued, err := q.open.Load().stream.GetLastMsgForSubject(ctx, q.subject(task.ID()))
		if err != nil {
			t.Errorf("%s: no task is in the queue: %v", name, err)
			continue
		}
		if n := task.changed(queued.Data); (n > 0) != (c.want == errQueued) {
			t.Errorf("%s: %d files of the queued task differ", name, n)
		}
	}
}
