package engine

import (
	"context"
	"io"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"gcsup/internal/lend"
)

// RateLimit limits the object data of all uploads that use it, in bytes per second. The
// uploads take turns, however many connections each of them has. It is safe for concurrent
// use.
type RateLimit struct {
	limit   atomic.Int64  // as in bucket
	turn    chan struct{} // holds a value while a reader waits for the bucket
	changed chan struct{} // gets a value when the limit changes
	timer   *time.Timer   // of the reader that has the turn

	mu     sync.Mutex
	bucket byteBucket
}

// Unlimited is the rate of a [RateLimit] that limits nothing.
const Unlimited int64 = math.MaxInt64

// NewRateLimit returns a limit of bytesPerSecond. 0 or less pauses all uploads.
func NewRateLimit(bytesPerSecond int64) *RateLimit {
	l := &RateLimit{turn: make(chan struct{}, 1), changed: make(chan struct{}, 1), timer: time.NewTimer(time.Hour)}
	l.timer.Stop()
	l.SetLimit(bytesPerSecond)
	return l
}

// Rate returns the limit in bytes per second.
func (l *RateLimit) Rate() int64 { return l.limit.Load() }

// SetLimit changes the limit to bytesPerSecond.
func (l *RateLimit) SetLimit(bytesPerSecond int64) {
	limit := max(bytesPerSecond, 0)
	l.mu.Lock()
	l.bucket.setRate(limit, time.Now())
	l.limit.Store(limit)
	l.mu.Unlock()
	select {
	case l.changed <- struct{}{}:
	default: // the reader has not received the last value yet
	}
}

// Held returns the total time for which the limit held bytes back.
func (l *RateLimit) Held() time.Duration {
	if l == nil {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bucket.advance(time.Now())
	return l.bucket.held
}

// wait waits until n bytes may pass. If ctx is done first, it returns the cause of ctx.
func (l *RateLimit) wait(ctx context.Context, n int) error {
	if err := takeTurn(ctx, l.turn); err != nil {
		return err
	}
	defer func() { <-l.turn }()
	for {
		delay := l.pass(n)
		var paid <-chan time.Time
		switch delay {
		case 0:
			return nil
		case indefinitely:
		default:
			l.timer.Reset(delay)
			paid = l.timer.C
		}
		select {
		case <-paid:
		case <-l.changed:
		case <-ctx.Done():
			l.leave()
			return context.Cause(ctx)
		}
	}
}

func (l *RateLimit) pass(n int) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.bucket.pass(n, time.Now())
}

func (l *RateLimit) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bucket.leave(time.Now())
}

// takeTurn sends a value to turn, which the caller must receive to end the turn. Senders
// get the turn in the order in which they asked for it. If ctx is done first, takeTurn
// returns the cause of ctx.
func takeTurn(ctx context.Context, turn chan struct{}) error {
	select {
	case turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// RateShare is the place of one upload in the queue of a limit. Only one connection of
// the upload at a time uses it, and the others wait for that one.
type RateShare struct {
	limit *RateLimit
	turn  chan struct{} // holds a value while a connection uses the place
}

// Share returns a place for another upload. It is nil if l is nil.
func (l *RateLimit) Share() *RateShare {
	if l == nil {
		return nil
	}
	return &RateShare{limit: l, turn: make(chan struct{}, 1)}
}

// wait waits until n bytes may pass. If ctx is done first, it returns the cause of ctx.
func (s *RateShare) wait(ctx context.Context, n int) error {
	if n == 0 || s.limit.Rate() == Unlimited {
		return nil
	}
	if err := takeTurn(ctx, s.turn); err != nil {
		return err
	}
	defer func() { <-s.turn }()
	return s.limit.wait(ctx, n)
}

// unpaused waits while uploads are paused, and reports whether they were. A request that waits for its first byte
// would only use up the patience of the service. If ctx is done first, it returns the cause of ctx.
func (s *RateShare) unpaused(ctx context.Context) (paused bool, err error) {
	if s == nil || s.limit.Rate() > 0 {
		return false, nil
	}
	if err := takeTurn(ctx, s.turn); err != nil {
		return true, err
	}
	defer func() { <-s.turn }()
	return true, s.limit.wait(ctx, 0)
}

// body returns a reader of r that waits for the limit. It is r if s is nil.
func (s *RateShare) body(ctx context.Context, r io.Reader) io.Reader {
	if s == nil {
		return r
	}
	return &limitedBody{ctx, r, s}
}

// limitedBody reads at most the bytes of a tick, and then waits until they may pass. A
// smaller read keeps the flow even, and the turns of all uploads short.
type limitedBody struct {
	ctx   context.Context
	r     io.Reader
	share *RateShare
}

func (b *limitedBody) Read(p []byte) (int, error) {
	n, err := b.r.Read(p[:b.most(len(p))])
	if waited := b.share.wait(b.ctx, n); waited != nil {
		return 0, waited
	}
	return n, err
}

// Lend implements [lend.Reader].
func (b *limitedBody) Lend(max int) ([]byte, error) {
	p, err := lend.Bytes(b.r, b.most(max))
	if waited := b.share.wait(b.ctx, len(p)); waited != nil {
		return nil, waited
	}
	return p, err
}

// most returns n, or the bytes of a tick if they are less.
func (b *limitedBody) most(n int) int {
	return int(min(int64(n), bytesPerTick(b.share.limit.Rate())))
}
