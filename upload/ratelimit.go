package upload

import (
	"context"
	"io"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"gcsup/session"
)

// limiting keeps the object data of all exchanges together below the rate of a
// limiter, in bytes per second. A nil limiter does not limit.
func limiting(limiter *sharedLimiter) link {
	return func(next doer) doer {
		if limiter == nil {
			return next
		}
		return func(ctx context.Context, x exchange) session.Reply {
			if x.body != nil {
				x.body = &limitedBody{ctx, x.body, limiter}
			}
			return next(ctx, x)
		}
	}
}

// sharedLimiter lets only one reader at a time wait for tokens. If all readers
// waited, a change of the rate would come too late for them: each would have reserved
// its tokens at the old rate.
type sharedLimiter struct {
	*rate.Limiter
	turn   chan struct{} // holds a value while a reader waits
	waited atomic.Int64  // nanoseconds of all waits
}

// held returns the total time that readers had to wait.
func (l *sharedLimiter) held() time.Duration {
	if l == nil {
		return 0
	}
	return time.Duration(l.waited.Load())
}

// newSharedLimiter returns nil if limiter is nil.
func newSharedLimiter(limiter *rate.Limiter) *sharedLimiter {
	if limiter == nil {
		return nil
	}
	return &sharedLimiter{Limiter: limiter, turn: make(chan struct{}, 1)}
}

// wait waits for n tokens. It returns an error only if ctx is done.
func (l *sharedLimiter) wait(ctx context.Context, n int) error {
	if began := time.Now(); l.Limit() != rate.Inf {
		defer func() { l.waited.Add(int64(time.Since(began))) }()
	}
	for n > 0 && l.Limit() != rate.Inf {
		select {
		case l.turn <- struct{}{}:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		piece := max(1, min(n, l.Burst()))
		err := l.WaitN(ctx, piece)
		<-l.turn
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			return nil // the burst was reduced meanwhile, or allows nothing
		}
		n -= piece
	}
	return nil
}

// limitedBody waits after each Read for the tokens of the bytes.
type limitedBody struct {
	ctx     context.Context
	r       io.Reader
	limiter *sharedLimiter
}

func (b *limitedBody) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if waited := b.limiter.wait(b.ctx, n); waited != nil {
		err = waited
	}
	return n, err
}
