package upload

import (
	"context"
	"io"
	"slices"
	"time"

	"gcsup/session"
)

// exchange is one request and its reply.
type exchange struct {
	op   session.Op
	body io.Reader // the object data that the request sends; nil if there is none
	from int64     // the offset of body
	do   func(ctx context.Context, body io.Reader) session.Reply
}

// doer makes an exchange.
type doer func(ctx context.Context, x exchange) session.Reply

// link adds something to every exchange that passes through it.
type link func(next doer) doer

// chain returns a doer that passes each exchange through the links, from the first to
// the last, and then makes it.
func chain(links ...link) doer {
	do := doer(func(ctx context.Context, x exchange) session.Reply { return x.do(ctx, x.body) })
	for _, l := range slices.Backward(links) {
		do = l(do)
	}
	return do
}

// leasing returns a link that makes an exchange only while the lease that u needs is valid.
func leasing(u *uplink) link {
	return func(next doer) doer {
		return func(ctx context.Context, x exchange) session.Reply {
			if u.lease == nil {
				return next(ctx, x)
			}
			ctx, end, err := u.lease.Begin(ctx)
			if err != nil {
				return session.Reply{Op: x.op, Sent: x.from, Committed: -1, Err: err, Unsent: true, Reached: true}
			}
			defer end()
			return next(ctx, x)
		}
	}
}

// watchingStalls cancels an exchange that lags behind rate, in bytes per second,
// by more than timeout. Its error is then [session.ErrStalled].
func watchingStalls(timeout time.Duration, rate int64) link {
	return func(next doer) doer {
		return func(ctx context.Context, x exchange) session.Reply {
			ctx, w := watchStall(ctx, timeout, rate)
			defer w.stop()
			if x.body != nil {
				x.body = w.body(x.body)
			}
			return next(ctx, x)
		}
	}
}

// reaching records that the service has answered, for later replies.
func reaching(b *budget) link {
	return func(next doer) doer {
		return func(ctx context.Context, x exchange) session.Reply {
			r := next(ctx, x)
			r.Reached = b.reached.Load()
			if !r.Reached && r.Answered() {
				b.reached.Store(true)
			}
			return r
		}
	}
}

// noting calls f with the reply of every exchange that was made.
func noting(f func(session.Reply)) link {
	return func(next doer) doer {
		return func(ctx context.Context, x exchange) session.Reply {
			r := next(ctx, x)
			f(r)
			return r
		}
	}
}

// timing calls f, if it is not nil, with how long the service took to answer a request that
// carries no data.
func timing(f func(time.Duration)) link {
	return func(next doer) doer {
		if f == nil {
			return next
		}
		return func(ctx context.Context, x exchange) session.Reply {
			began := time.Now()
			r := next(ctx, x)
			if x.body == nil && r.Answers() {
				f(time.Since(began))
			}
			return r
		}
	}
}
