package engine

import (
	"context"
	"errors"
	"io"
	"net/http/httptrace"
	"time"

	"gcsup/session"
	"gcsup/upload/internal/netconn"
)

// exchange is one request and its reply.
type exchange struct {
	op     session.Op
	bucket string
	client *session.Client
	body   io.Reader // the object data that the request sends; nil if there is none
	from   int64     // the offset of body
	do     func(ctx context.Context, c *session.Client, body io.Reader) session.Reply
}

// do makes an exchange when the rate of its bucket allows it, while the permit is valid. The
// conversation decides what follows.
func (q *Requester) do(ctx context.Context, x exchange) session.Reply {
	u := q.uplink
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
		defer q.socket.Store(nil)
		watched = httptrace.WithClientTrace(watched, &httptrace.ClientTrace{
			GotConn: func(info httptrace.GotConnInfo) { q.socket.Store(netconn.NewSocket(info.Conn)) },
		})
		x.body = w.body(u.Limit.body(held, x.body), func() { end(errReplied) }) // a wait for the limit is time of the source
	}
	began := time.Now()
	r := q.describe(watched, x)
	if u.Replied != nil && x.body == nil && r.Answers() {
		u.Replied(time.Since(began))
	}
	r.Reached = u.Budget.Reached.Load()
	if !r.Reached && r.Answered() {
		u.Budget.Reached.Store(true)
	}
	q.answered(r)
	q.judge(rate, x, r)
	return r
}

// joinTimeout is the time after which a silent request counts as stalled if the service makes an
// object from many. The service documents that this "may take several minutes":
// https://cloud.google.com/storage/docs/xml-api/post-object-complete.
const joinTimeout = 10 * time.Minute

// stallTimeout returns the stall timeout of the exchange. usual is that of other requests; 0 means none.
func (x exchange) stallTimeout(usual time.Duration) time.Duration {
	if usual > 0 && (x.op == session.OpComplete || x.op == session.OpCompose) {
		return max(usual, joinTimeout)
	}
	return usual
}

// errReplied ends the wait of a body for the limit.
var errReplied = errors.New("the exchange has ended")

// unsent returns the reply to a request that was not made because of err.
func (x exchange) unsent(err error) session.Reply {
	return session.Reply{Op: x.op, Sent: x.from, Committed: -1, Err: err, Unsent: true, Reached: true}
}
