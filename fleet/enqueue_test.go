package fleet

import (
	"context"
	"errors"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"gcsup/fleet/natsserver"
)

// unacknowledged is a JetStream whose first acknowledgment of a message does not arrive. before is called
// instead of the first Publish.
type unacknowledged struct {
	jetstream.JetStream
	before func()
}

func (u *unacknowledged) Publish(ctx context.Context, subject string, data []byte, opts ...jetstream.PublishOpt) (*jetstream.PubAck, error) {
	if before := u.before; before != nil {
		u.before = nil
		before()
		return nil, context.DeadlineExceeded
	}
	return u.JetStream.Publish(ctx, subject, data, opts...)
}

// TestPublishTwice loses the reply to a message, and checks what the second try finds.
func TestPublishTwice(t *testing.T) {
	t.Parallel()
	server, err := natsserver.Start(natsserver.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	nc, err := server.Connect()
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	ctx := t.Context()
	q, err := OpenQueue(ctx, nc, QueueOptions{})
	if err != nil {
		t.Fatal(err)
	}
	js, task, other := q.js, sampleTask(), sampleTask()
	other.Files[0].Size++
	for name, c := range map[string]struct {
		first *Task // that the server gets instead of, or as, the first try
		want  error
	}{
		"the message arrived": {task, nil},
		"another one arrived": {other, errQueued},
		"no message arrived":  {nil, nil},
	} {
		if err := q.open.Load().stream.Purge(ctx); err != nil {
			t.Fatal(err)
		}
		q.js = &unacknowledged{js, func() {
			if c.first == nil {
				return
			}
			data, err := c.first.encode()
			if err == nil {
				_, err = js.Publish(ctx, q.subject(task.ID()), data)
			}
			if err != nil {
				t.Fatal(err)
			}
		}}
		if err := q.publish(ctx, task); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
		queued, err := q.open.Load().stream.GetLastMsgForSubject(ctx, q.subject(task.ID()))
		if err != nil {
			t.Fatal(err)
		}
		if n := task.changed(queued.Data); (n > 0) != (c.first == other) {
			t.Errorf("%s: %d files of the queued task differ", name, n)
		}
	}
}
