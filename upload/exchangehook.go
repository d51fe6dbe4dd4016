package upload

import (
	"cmp"
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
func (x Exchange) Context() context.Context { return cmp.Or(x.ctx, context.Background()) }

// log writes the line of the exchange.
func (x *Exchange) log(logger *slog.Logger, attrs []slog.Attr) {
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
	logger.LogAttrs(x.ctx, slog.LevelDebug, string(x.Op), attrs...)
}
