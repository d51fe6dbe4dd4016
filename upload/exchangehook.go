package upload

import (
	"context"
	"log/slog"
	"time"

	"gcsup/session"
)

// Exchange describes one request, its reply and what follows, see [Options].Exchange. It
// holds no secrets.
type Exchange struct {
	Upload int64 // as in [Event]
	ID     string
	Spec   Spec

	Op        session.Op
	Part      int           // the number of the part, from 1; 0 if the request is not about one part of a file
	Attempt   int           // number of requests since the last newly committed byte, including this one
	Time      time.Time     // when it began
	Duration  time.Duration // until the reply was read
	Offset    int64         // offset of the object data in the request; without object data, the committed offset before the request
	Sent      int64         // bytes of object data that were handed to the network
	Status    int           // HTTP status; 0 if no reply arrived
	Committed int64         // offset up to which the reply reports bytes as durable; -1 if it reports none
	Err       error         // why no reply arrived, or what is wrong with it

	// Next is the decision that follows. It is nil if the upload ended, or if nothing
	// depends on the reply.
	Next *session.Action

	ctx context.Context
}

// Context returns the context of the request. It has the values of the context of the
// call, such as a trace. It may be done.
func (x Exchange) Context() context.Context { return contextOf(x.ctx) }

// exchangeKey is the key of the Exchange in the context of its request.
type exchangeKey struct{}

// undecidedKey is the key of the exchanges in a context whose decision is not known yet.
type undecidedKey struct{}

// madeExchanges are the exchanges of one step of a conversation.
type madeExchanges []func(next *session.Action)

// undecided returns a context for one step of a conversation. Its exchanges are reported
// when the decision is known.
func undecided(ctx context.Context) (context.Context, *madeExchanges) {
	made := new(madeExchanges)
	return context.WithValue(ctx, undecidedKey{}, made), made
}

// report reports the exchanges with the action that follows, or nil. It reports a copy, because
// the conversation changes its action, and a failed upload the error in it.
func (m *madeExchanges) report(next *session.Action) {
	if len(*m) > 0 && next != nil {
		kept := *next
		if kept.Err != nil {
			kept.Err = new(*kept.Err)
		}
		next = &kept
	}
	for _, report := range *m {
		report(next)
	}
	*m = nil
}

// reporting logs each exchange, with the attributes that attrs returns, and passes its
// description to the hook, in the goroutine of the events. begin sets what is known before
// the request.
func reporting(logger *slog.Logger, attrs func() []slog.Attr, e *events, begin func(*Exchange)) link {
	return func(next doer) doer {
		return func(ctx context.Context, x exchange) session.Reply {
			hooked, logged := e != nil && e.hook != nil, logger.Enabled(ctx, slog.LevelDebug)
			if !hooked && !logged {
				return next(ctx, x)
			}
			v := &Exchange{}
			begin(v)
			v.Time, v.ctx = time.Now(), context.WithValue(ctx, exchangeKey{}, v)
			r := next(v.ctx, x)
			v.Op, v.Status, v.Err, v.Duration = r.Op, r.Status, r.Err, time.Since(v.Time)
			if x.body != nil {
				v.Offset, v.Sent = x.from, max(r.Sent-x.from, 0)
			}
			var open bool
			if v.Committed, open = r.Held(); !open {
				v.Committed = -1
			}
			report := func(next *session.Action) {
				v.Next = next
				if logged {
					v.log(ctx, logger, attrs())
				}
				if hooked {
					e.exchanged(*v)
				}
			}
			if made, ok := ctx.Value(undecidedKey{}).(*madeExchanges); ok {
				*made = append(*made, report)
			} else {
				report(nil)
			}
			return r
		}
	}
}

// log writes the line of the exchange.
func (x *Exchange) log(ctx context.Context, logger *slog.Logger, attrs []slog.Attr) {
	if x.Part > 0 {
		attrs = append(attrs, slog.Int("part", x.Part))
	}
	attrs = append(attrs, slog.Int64("from", x.Offset), slog.Int64("sent", x.Sent), slog.Int("status", x.Status))
	if x.Committed >= 0 {
		attrs = append(attrs, slog.Int64("held", x.Committed))
	}
	if x.Err != nil {
		attrs = append(attrs, slog.Any("err", x.Err))
	}
	attrs = append(attrs, slog.Duration("took", x.Duration))
	if x.Next != nil {
		attrs = append(attrs, slog.String("next", x.Next.String()))
	}
	logger.LogAttrs(ctx, slog.LevelDebug, string(x.Op), attrs...)
}
