package engine

import (
	"context"
	"errors"
	"io"
	"net/http/httptrace"
	"time"

	"gcsup/internal/decide"
	"gcsup/session"
	"gcsup/upload/internal/netconn"
)

// Plain makes an exchange that sends no object data.
func (q *Requester) Plain(ctx context.Context, op session.Op, call func(context.Context, *session.Client) session.Reply) session.Reply {
	return q.exchange(ctx, exchange{op: op, call: func(ctx context.Context, c *session.Client, _ io.Reader) session.Reply { return call(ctx, c) }})
}

// Send makes an exchange that sends object data, body. It begins at offset from. body may be nil.
func (q *Requester) Send(ctx context.Context, op session.Op, from int64, body io.Reader, call func(context.Context, *session.Client, io.Reader) session.Reply) session.Reply {
	return q.exchange(ctx, exchange{op: op, body: body, from: from, call: call})
}

// exchange makes an exchange when the rate of its bucket allows it, while the permit is valid. The
// conversation decides what follows.
func (q *Requester) exchange(ctx context.Context, x exchange) session.Reply {
	u := q.uplink
	ctx, x.client = q.client(ctx)
	if x.body != nil {
		paused, err := u.Limit.unpaused(ctx)
		if err != nil {
			return x.unsent(err)
		}
		if paused { // the user wants it to continue now, whatever failed before
			q.Retry.Progressed()
		}
	}
	rate, err := q.pace(ctx, x)
	if err != nil {
		return x.unsent(err)
	}
	asked := ctx
	if u.Permit != nil {
		permitted, end, err := u.Permit.Begin(ctx)
		if err != nil {
			if rate != nil {
				rate.Cancel()
			}
			return x.unsent(err)
		}
		defer end()
		ctx = permitted
	}
	watched, w := watchStall(ctx, x.stallTimeout(u.StallTimeout), u.StallRate)
	defer w.stop()
	if x.body != nil {
		held, end := context.WithCancelCause(ctx)
		defer end(nil)
		defer q.memory.socket.Store(nil)
		watched = httptrace.WithClientTrace(watched, &httptrace.ClientTrace{
			GotConn: func(info httptrace.GotConnInfo) { q.memory.socket.Store(netconn.NewSocket(info.Conn)) },
		})
		x.body = w.body(u.Limit.body(held, x.body), func() { end(errReplied) }) // a wait for the limit is time of the source
	}
	began := time.Now()
	r := q.describe(watched, x)
	if u.Replied != nil && x.body == nil && decide.Answers(&r) {
		u.Replied(time.Since(began))
	}
	// If the permit ended the request, the destination is not at fault, even if it never answered.
	expired := asked.Err() == nil && ctx.Err() != nil && errors.Is(r.Err, context.Cause(ctx))
	r.Reached = expired || u.Budget.Reached.Load()
	if !r.Reached && decide.Answered(&r) {
		u.Budget.Reached.Store(true)
	}
	q.answered(r)
	q.judge(rate, x, r)
	return r
}

// errReplied ends the wait of a body for the limit.
var errReplied = errors.New("the exchange has ended")
