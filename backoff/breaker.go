package backoff

import (
	"sync"
	"time"

	"gcsup/internal/breaker"
)

// NoBreaker is a circuit breaker that never opens. Use it for a [Transport] without a
// breaker: a nil Breaker means one of its own.
var NoBreaker = &Breaker{Threshold: -1}

// A Breaker is a circuit breaker: it limits the retries to a service that is down.
// All operations on one endpoint share a Breaker.
//
// The breaker opens when several requests of more than one operation fail in a row,
// with no success in between. While the breaker is open, one operation at a time makes
// a probe, which is its next retry. The others wait. A wait for the breaker uses no
// retry. After a failed probe, the operation that has waited longest makes the next
// one. The waits between probes are those of the [Policy]. If the outcome of a probe is
// not known after Policy.Maximum, the next one is made nevertheless.
//
// A success closes the breaker in steps, in which it is half-open. Each successful retry raises the limit of
// concurrent retries by one, so that it doubles when all of them succeed. A failed retry halves the limit.
// The breaker is closed when the limit exceeds the number of failing operations.
//
// Only retries wait for the breaker. A first request does not, nor does a request
// that continues an operation after progress. An operation that fails alone
// waits for its own backoff only. With the zero Policy, 32 operations that fail
// together make about 37 requests in the first 32 s, and then one per 32 s.
// Without a breaker they make 160 in the first 32 s.
//
// A [Waiter] uses the breaker. The zero value is ready to use. A Breaker is safe for
// concurrent use and must not be copied. A nil *Breaker never opens.
type Breaker struct {
	// Threshold is the number of requests that must fail in a row to open the
	// breaker. 0 means 5. A negative number switches the breaker off. Threshold must
	// not change while the breaker is in use.
	Threshold int

	mu    sync.Mutex
	rules breaker.Breaker
	timer *time.Timer // admits operations later; nil before its first use
}

func (b *Breaker) off() bool { return b == nil || b.Threshold < 0 }

// change makes a change, and admits the operations that may then retry.
func (b *Breaker) change(do func(rules *breaker.Breaker, now time.Time)) {
	if b.off() {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	do(&b.rules, now)
	next := b.rules.Admit(now)
	switch {
	case !next.IsZero() && b.timer == nil:
		b.timer = time.AfterFunc(next.Sub(now), func() { b.change(func(*breaker.Breaker, time.Time) {}) })
	case !next.IsZero():
		b.timer.Reset(next.Sub(now))
	case b.timer != nil:
		b.timer.Stop()
	}
}

// failed records that a request of o failed. The next probe waits as long as policy
// requires. random and retryAfter are those of o's own wait. A lone operation is
// therefore admitted when that wait ends: its failures are one more than its probes.
func (b *Breaker) failed(o *breaker.Operation, policy Policy, random float64, retryAfter time.Duration) {
	b.change(func(rules *breaker.Breaker, now time.Time) {
		rules.Failed(o, now, b.Threshold, func(probes int) time.Duration { return policy.Wait(probes, random, retryAfter) })
	})
}

// succeeded records that a request of o succeeded.
func (b *Breaker) succeeded(o *breaker.Operation) {
	b.change(func(rules *breaker.Breaker, _ time.Time) { rules.Succeeded(o) })
}

// Open reports whether retries wait for a probe of the service.
func (b *Breaker) Open() bool {
	if b.off() {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.rules.Open()
}

// enter returns nil if o may retry now, and otherwise a channel that is closed
// when o may retry. A caller that stops waiting must call leave.
func (b *Breaker) enter(o *breaker.Operation, patience time.Duration) <-chan struct{} {
	var turn chan struct{}
	b.change(func(rules *breaker.Breaker, _ time.Time) {
		if rules.Open() {
			turn = make(chan struct{})
			rules.Wait(o, patience, func() { close(turn) })
		}
	})
	select {
	case <-turn:
		return nil
	default:
		return turn
	}
}

// leave records that o ended, or failed for a reason that does not concern the
// service.
func (b *Breaker) leave(o *breaker.Operation) {
	b.change(func(rules *breaker.Breaker, now time.Time) { rules.Leave(o, now) })
}
