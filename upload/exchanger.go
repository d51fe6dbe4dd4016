package upload

import (
	"context"
	"io"
	"time"

	"gcsup/chunk"
	"gcsup/session"
)

// exchanger makes the exchanges of one object. It has the methods of [session.Client] for a
// session and a single insert, without the arguments that do not change. [exchanger.plain] and
// [exchanger.send] are for others.
type exchanger struct {
	*requester
	spec session.Spec
}

// plain makes an exchange that sends no object data.
func (x *exchanger) plain(ctx context.Context, op session.Op, do func(context.Context, *session.Client) session.Reply) session.Reply {
	return x.do(ctx, exchange{op: op, client: x.service(), do: func(ctx context.Context, c *session.Client, _ io.Reader) session.Reply { return do(ctx, c) }})
}

// send makes an exchange that sends object data, body. It begins at offset from. body may be nil.
func (x *exchanger) send(ctx context.Context, op session.Op, from int64, body io.Reader, do func(context.Context, *session.Client, io.Reader) session.Reply) session.Reply {
	return x.do(ctx, exchange{op: op, client: x.service(), body: body, from: from, do: do})
}

func (x *exchanger) start(ctx context.Context, size int64) session.Reply {
	return x.plain(ctx, session.OpStart, func(ctx context.Context, c *session.Client) session.Reply { return c.Start(ctx, x.spec, size) })
}

// query asks how much is committed.
func (x *exchanger) query(ctx context.Context, uri session.URI) session.Reply {
	return x.plain(ctx, session.OpQuery, func(ctx context.Context, c *session.Client) session.Reply { return c.Query(ctx, uri) })
}

// service returns the client for a request. After a request failed on a reused
// connection, each request gets a connection of its own until the upload progresses:
// the peer may close each connection shortly after a reply.
func (x *exchanger) service() *session.Client {
	client := x.uplink.client.WithEncryptionKey(x.spec.EncryptionKey).WithIntention(x.aim.current())
	if x.stale.Load() {
		client = client.WithoutKeepAlive()
	}
	return client
}

func (x *exchanger) cancel(ctx context.Context, uri session.URI) session.Reply {
	return x.plain(ctx, session.OpCancel, func(ctx context.Context, c *session.Client) session.Reply { return c.Cancel(ctx, uri) })
}

// stat reads the metadata of the object at the destination, to check a precondition.
func (x *exchanger) stat(ctx context.Context) session.Reply {
	return x.plain(ctx, session.OpStat, func(ctx context.Context, _ *session.Client) session.Reply { return x.uplink.stat(ctx, x.spec) })
}

// statOf reads the metadata of an object of the upload, which may be a temporary one. Unlike
// that of [exchanger.stat], its reply has the server's clock.
func (x *exchanger) statOf(ctx context.Context) session.Reply {
	return x.plain(ctx, session.OpStat, func(ctx context.Context, c *session.Client) session.Reply { return c.Stat(ctx, x.spec) })
}

// insert makes the object of spec, whose precondition may differ from that of the
// upload.
func (x *exchanger) insert(ctx context.Context, spec session.Spec, size int64, crc32c uint32, body io.Reader) session.Reply {
	return x.send(ctx, session.OpInsert, 0, body, func(ctx context.Context, c *session.Client, body io.Reader) session.Reply {
		return c.Insert(ctx, spec, size, crc32c, body)
	})
}

func (x *exchanger) put(ctx context.Context, uri session.URI, rng chunk.Range, total int64, body io.Reader) session.Reply {
	return x.send(ctx, session.OpPut, rng.From, body, func(ctx context.Context, c *session.Client, body io.Reader) session.Reply {
		return c.Put(ctx, uri, rng, total, body)
	})
}

// finalize sends the last bytes; body is nil if the server holds them all.
func (x *exchanger) finalize(ctx context.Context, uri session.URI, rng chunk.Range, crc32c uint32, body io.Reader) session.Reply {
	return x.send(ctx, session.OpFinalize, rng.From, body, func(ctx context.Context, c *session.Client, body io.Reader) session.Reply {
		return c.Finalize(ctx, uri, rng, rng.To, crc32c, body)
	})
}

// dropTimeout bounds the cancellation of a session that is no longer needed.
// dropTimeoutCancelled is the bound after the upload was cancelled.
const (
	dropTimeout          = 10 * time.Second
	dropTimeoutCancelled = 2 * time.Second
)

// drop cancels a session that is no longer needed, even if ctx is done. This is
// optional, because an unused session expires.
func (x *exchanger) drop(ctx context.Context, uri session.URI) {
	if uri.IsZero() {
		return
	}
	timeout := dropTimeout
	if ctx.Err() != nil {
		timeout = dropTimeoutCancelled
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	x.cancel(ctx, uri)
}
