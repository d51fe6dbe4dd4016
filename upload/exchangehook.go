package upload

import (
	"context"
	"time"

	"gcsup/session"
)

// Exchange describes one request and its reply, see [Options].Exchange. It holds no
// secrets.
type Exchange struct {
	Upload int64 // as in [Event]
	ID     string
	Spec   Spec

	Op        session.Op
	Attempt   int           // number of requests since the last newly committed byte, including this one
	Time      time.Time     // when it began
	Duration  time.Duration // until the reply was read
	Offset    int64         // offset of the object data in the request; without object data, the committed offset before the request
	Sent      int64         // bytes of object data that were handed to the network
	Status    int           // HTTP status; 0 if no reply arrived
	Committed int64         // offset up to which the reply reports bytes as durable; -1 if it reports none
	Err       error         // why no reply arrived, or what is wrong with it

	ctx context.Context
}

// Context returns the context of the call, for the values in it, such as a trace.
// It may be done.
func (x Exchange) Context() context.Context { return contextOf(x.ctx) }

// reporting calls the hook with a description of every exchange, in the goroutine of
// the events. progress returns the committed offset and the number of requests since
// the last newly committed byte.
func reporting(e *events, progress func() (committed int64, attempts int)) link {
	return func(next doer) doer {
		if e == nil || e.hook == nil {
			return next
		}
		return func(ctx context.Context, x exchange) session.Reply {
			committed, attempts := progress()
			v := Exchange{Time: time.Now(), Attempt: attempts + 1, Offset: committed, Committed: -1}
			r := next(ctx, x)
			v.Op, v.Status, v.Err, v.Duration = r.Op, r.Status, r.Err, time.Since(v.Time)
			if x.body != nil {
				v.Offset, v.Sent = x.from, max(r.Sent-x.from, 0)
			}
			if r.Status == 308 {
				v.Committed = r.Committed
			}
			e.exchanged(v)
			return r
		}
	}
}
