package upload

import (
	"context"
	"io"
	"time"

	"gcsup/chunk"
	"gcsup/session"
)

// exchanger makes the exchanges of one object. It has the methods of [session.Client],
// without the arguments that do not change.
type exchanger struct {
	*requester
	spec Spec
}

// plain makes an exchange that sends no object data.
func (x *exchanger) plain(ctx context.Context, op session.Op, do func(context.Context, *session.Client) session.Reply) session.Reply {
	return x.do(ctx, exchange{op: op, do: func(ctx context.Context, _ io.Reader) session.Reply { return do(ctx, x.service()) }})
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
	client := x.client.WithEncryptionKey(x.spec.EncryptionKey).WithIntention(x.aim.current())
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
	return x.plain(ctx, session.OpStat, func(ctx context.Context, _ *session.Client) session.Reply { return x.requester.stat(ctx, x.spec) })
}

// statOf reads the metadata of an object of the upload, which may be a temporary one. Unlike
// that of stat, its reply has the server's clock.
func (x *exchanger) statOf(ctx context.Context) session.Reply {
	return x.plain(ctx, session.OpStat, func(ctx context.Context, c *session.Client) session.Reply { return c.Stat(ctx, x.spec) })
}

// compose makes the object from others.
func (x *exchanger) compose(ctx context.Context, components []session.Component, crc32c uint32, deleteSources bool) session.Reply {
	return x.plain(ctx, session.OpCompose, func(ctx context.Context, c *session.Client) session.Reply {
		return c.Compose(ctx, x.spec, components, crc32c, deleteSources)
	})
}

// remove deletes one generation of the object.
func (x *exchanger) remove(ctx context.Context, generation int64) session.Reply {
	return x.plain(ctx, session.OpDelete, func(ctx context.Context, c *session.Client) session.Reply {
		return c.DeleteGeneration(ctx, x.spec, generation)
	})
}

func (x *exchanger) startMultipart(ctx context.Context) session.Reply {
	return x.plain(ctx, session.OpMultipartStart, func(ctx context.Context, c *session.Client) session.Reply { return c.StartMultipart(ctx, x.spec) })
}

// part sends a part of a multipart upload, with a number from 1.
func (x *exchanger) part(ctx context.Context, uri session.URI, number int, size int64, crc32c uint32, body io.Reader) (etag string, _ session.Reply) {
	r := x.do(ctx, exchange{op: session.OpPart, body: body, do: func(ctx context.Context, body io.Reader) (r session.Reply) {
		etag, r = x.service().PutPart(ctx, x.spec, uri, number, size, crc32c, body)
		return r
	}})
	return etag, r
}

// parts lists the parts of a multipart upload whose numbers are greater than after.
func (x *exchanger) parts(ctx context.Context, uri session.URI, after int) (parts []session.UploadedPart, more bool, _ session.Reply) {
	r := x.plain(ctx, session.OpParts, func(ctx context.Context, c *session.Client) (r session.Reply) {
		parts, more, r = c.ListParts(ctx, x.spec, uri, after)
		return r
	})
	return parts, more, r
}

func (x *exchanger) complete(ctx context.Context, uri session.URI, parts []session.UploadedPart) session.Reply {
	return x.plain(ctx, session.OpComplete, func(ctx context.Context, c *session.Client) session.Reply {
		return c.CompleteMultipart(ctx, x.spec, uri, parts)
	})
}

func (x *exchanger) abort(ctx context.Context, uri session.URI) session.Reply {
	return x.plain(ctx, session.OpAbort, func(ctx context.Context, c *session.Client) session.Reply { return c.AbortMultipart(ctx, x.spec, uri) })
}

// insert makes the object of spec, whose precondition may differ from that of the
// upload.
func (x *exchanger) insert(ctx context.Context, spec Spec, size int64, crc32c uint32, body io.Reader) session.Reply {
	return x.do(ctx, exchange{op: session.OpInsert, body: body, do: func(ctx context.Context, body io.Reader) session.Reply {
		return x.service().Insert(ctx, spec, size, crc32c, body)
	}})
}

func (x *exchanger) put(ctx context.Context, uri session.URI, rng chunk.Range, total int64, body io.Reader) session.Reply {
	return x.do(ctx, exchange{op: session.OpPut, body: body, from: rng.From, do: func(ctx context.Context, body io.Reader) session.Reply {
		return x.service().Put(ctx, uri, rng, total, body)
	}})
}

// finalize sends the last bytes; body is nil if the server holds them all.
func (x *exchanger) finalize(ctx context.Context, uri session.URI, rng chunk.Range, crc32c uint32, body io.Reader) session.Reply {
	return x.do(ctx, exchange{op: session.OpFinalize, body: body, from: rng.From, do: func(ctx context.Context, body io.Reader) session.Reply {
		return x.service().Finalize(ctx, uri, rng, rng.To, crc32c, body)
	}})
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
