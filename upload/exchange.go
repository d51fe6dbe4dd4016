package upload

import (
	"context"
	"io"
	"log/slog"
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
			if !r.Reached && answered(r) {
				b.reached.Store(true)
			}
			return r
		}
	}
}

// answered reports whether a reply comes from the service.
func answered(r session.Reply) bool {
	switch {
	case r.FromService, r.Object != nil, !r.URI.IsZero():
		return true
	case r.Op == session.OpList:
		return r.Status == 200 && r.Err == nil
	}
	return r.Status == 308 && r.Redirect == ""
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

// logging writes a line for every exchange, with the attributes that attrs
// returns.
func logging(logger *slog.Logger, attrs func() []slog.Attr) link {
	return func(next doer) doer {
		return func(ctx context.Context, x exchange) session.Reply {
			began := time.Now()
			r := next(ctx, x)
			if logger.Enabled(ctx, slog.LevelDebug) {
				logger.LogAttrs(ctx, slog.LevelDebug, string(r.Op), append(attrs(),
					slog.Int("status", r.Status), slog.Any("err", r.Err),
					slog.Int64("sent", r.Sent), slog.Int64("held", r.Committed), slog.Duration("took", time.Since(began)))...)
			}
			return r
		}
	}
}
