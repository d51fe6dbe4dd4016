package engine

import (
	"context"
	"io"
	"time"

	"gcsup/chunk"
	"gcsup/session"
)

// Exchanger makes the exchanges of one object, by [Exchanger.Plain] and [Exchanger.Send]. The
// other methods are those of [session.Client] that have several callers.
type Exchanger struct {
	*Requester
	Spec session.Spec
}

// Plain makes an exchange that sends no object data.
func (x *Exchanger) Plain(ctx context.Context, op session.Op, do func(context.Context, *session.Client) session.Reply) session.Reply {
	return x.do(ctx, exchange{op: op, bucket: x.Spec.Bucket, client: x.service(), do: func(ctx context.Context, c *session.Client, _ io.Reader) session.Reply { return do(ctx, c) }})
}

// Send makes an exchange that sends object data, body. It begins at offset from. body may be nil.
func (x *Exchanger) Send(ctx context.Context, op session.Op, from int64, body io.Reader, do func(context.Context, *session.Client, io.Reader) session.Reply) session.Reply {
	return x.do(ctx, exchange{op: op, bucket: x.Spec.Bucket, client: x.service(), body: body, from: from, do: do})
}

// Query asks how much is committed.
func (x *Exchanger) Query(ctx context.Context, uri session.URI) session.Reply {
	return x.Plain(ctx, session.OpQuery, func(ctx context.Context, c *session.Client) session.Reply { return c.Query(ctx, uri) })
}

// service returns the client for a request. After a request failed on a reused
// connection, each request gets a connection of its own until the upload progresses:
// the peer may close each connection shortly after a reply.
func (x *Exchanger) service() *session.Client {
	client := x.uplink.Client.WithEncryptionKey(x.Spec.EncryptionKey).WithIntention(x.aim.current())
	if x.stale.Load() {
		client = client.WithoutKeepAlive()
	}
	return client
}

// Cancel cancels a session.
func (x *Exchanger) Cancel(ctx context.Context, uri session.URI) session.Reply {
	return x.Plain(ctx, session.OpCancel, func(ctx context.Context, c *session.Client) session.Reply { return c.Cancel(ctx, uri) })
}

// Stat reads the metadata of the object.
func (x *Exchanger) Stat(ctx context.Context) session.Reply {
	return x.Plain(ctx, session.OpStat, func(ctx context.Context, c *session.Client) session.Reply { return c.Stat(ctx, x.Spec) })
}

// finalize sends the last bytes; body is nil if the server holds them all.
func (x *Exchanger) finalize(ctx context.Context, uri session.URI, rng chunk.Range, crc32c uint32, body io.Reader) session.Reply {
	return x.Send(ctx, session.OpFinalize, rng.From, body, func(ctx context.Context, c *session.Client, body io.Reader) session.Reply {
		return c.Finalize(ctx, uri, rng, rng.To, crc32c, body)
	})
}

// dropTimeout bounds the cancellation of a session that is no longer needed.
// dropTimeoutCanceled is the bound after the upload was canceled.
const (
	dropTimeout         = 10 * time.Second
	dropTimeoutCanceled = 2 * time.Second
)

// Drop cancels a session that is no longer needed, even if ctx is done. This is
// optional, because an unused session expires. If ctx ends meanwhile, Drop does not wait for the reply.
func (x *Exchanger) Drop(ctx context.Context, uri session.URI) {
	if uri.IsZero() {
		return
	}
	timeout := dropTimeout
	if ctx.Err() != nil {
		ctx, timeout = context.WithoutCancel(ctx), dropTimeoutCanceled
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	x.Cancel(ctx, uri)
}
