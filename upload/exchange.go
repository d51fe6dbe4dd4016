package upload

import (
	"context"
	"io"
	"time"

	"gcsup/session"
)

// exchange is one request and its reply.
type exchange struct {
	op     session.Op
	client *session.Client
	body   io.Reader // the object data that the request sends; nil if there is none
	from   int64     // the offset of body
	do     func(ctx context.Context, c *session.Client, body io.Reader) session.Reply
}

// do makes an exchange while the permit is valid.
func (q *requester) do(ctx context.Context, x exchange) session.Reply {
	u := q.uplink
	if u.lease != nil {
		permitted, end, err := u.lease.Begin(ctx)
		if err != nil {
			return session.Reply{Op: x.op, Sent: x.from, Committed: -1, Err: err, Unsent: true, Reached: true}
		}
		defer end()
		ctx = permitted
	}
	watched, w := watchStall(ctx, u.stallTimeout, u.stallRate)
	defer w.stop()
	if x.body != nil {
		x.body = w.body(u.limit.body(ctx, x.body)) // a wait for the limit is time of the source
	}
	began := time.Now()
	r := q.describe(watched, x)
	if u.replied != nil && x.body == nil && r.Answers() {
		u.replied(time.Since(began))
	}
	r.Reached = u.budget.reached.Load()
	if !r.Reached && r.Answered() {
		u.budget.reached.Store(true)
	}
	q.answered(r)
	return r
}
