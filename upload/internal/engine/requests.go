package engine

import (
	"context"
	"io"
	"time"

	"gcsup/chunk"
	"gcsup/internal/grace"
	"gcsup/session"
)

// Query asks how much is committed.
func (q *Requester) Query(ctx context.Context, uri session.URI) session.Reply {
	return q.Plain(ctx, session.OpQuery, func(ctx context.Context, c *session.Client) session.Reply { return c.Query(ctx, uri) })
}

// Cancel cancels a session.
func (q *Requester) Cancel(ctx context.Context, uri session.URI) session.Reply {
	return q.Plain(ctx, session.OpCancel, func(ctx context.Context, c *session.Client) session.Reply { return c.Cancel(ctx, uri) })
}

// Stat reads the metadata of the object.
func (q *Requester) Stat(ctx context.Context) session.Reply {
	return q.Plain(ctx, session.OpStat, func(ctx context.Context, c *session.Client) session.Reply { return c.Stat(ctx, q.Spec) })
}

// finalize sends the last bytes; body is nil if the server holds them all.
func (q *Requester) finalize(ctx context.Context, uri session.URI, rng chunk.Range, crc32c uint32, body io.Reader) session.Reply {
	return q.Send(ctx, session.OpFinalize, rng.From, body, func(ctx context.Context, c *session.Client, body io.Reader) session.Reply {
		return c.Finalize(ctx, uri, rng, rng.To, crc32c, body)
	})
}

// dropTimeout bounds the cancellation of a session that is no longer needed, unless the upload was canceled.
const dropTimeout = 10 * time.Second

// Drop cancels a session that is no longer needed, even if ctx is done. This is
// optional, because an unused session expires. If ctx ends meanwhile, Drop does not wait for the reply.
func (q *Requester) Drop(ctx context.Context, uri session.URI) {
	if uri.IsZero() {
		return
	}
	timeout := dropTimeout
	if ctx.Err() != nil {
		ctx, timeout = context.WithoutCancel(ctx), grace.Requests
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	q.Cancel(ctx, uri)
}
