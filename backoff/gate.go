package backoff

import (
	"strings"
	"sync"
	"time"

	"gcsup/internal/breaker"
)

// NoGate is a gate that never closes. Use it to switch off the gate of a
// [Transport], which makes its own gate if its Gate is nil.
var NoGate = &Gate{Threshold: -1}

// A Gate limits the retries to a service that is down. All operations on one
// endpoint share a Gate.
//
// The gate closes when several requests in a row fail, of more than one
// operation, with no success in between. While the gate is closed, one
// operation at a time makes a probe, which is its next retry. The others wait.
// A wait at the gate uses no try. After a failed probe, the operation that has
// waited longest makes the next one, after the wait of the [Policy] for that
// many failures in a row. The next probe does not wait longer than
// Policy.Maximum for the outcome of a probe.
//
// A success opens the gate in steps. Each successful retry raises the limit of
// concurrent retries by one, so that 1, 2, 4, 8 and so on are under way at a
// time. A failed retry halves the limit. The gate is open when the limit
// exceeds the number of failing operations.
//
// Only retries wait at the gate. A first request does not, nor does a request
// that continues an operation after progress. An operation that fails alone
// waits for its own backoff only. With the zero Policy, 32 operations that fail
// together make about 37 requests in the first 32 s, and then one per 32 s.
// Without a gate they make 160 in the first 32 s.
//
// A [Waiter] uses the gate. The zero value is ready to use. A Gate is safe for
// concurrent use and must not be copied. A nil *Gate never closes.
type Gate struct {
	// Threshold is the number of requests that must fail in a row to close the
	// gate. 0 means 5. A negative number switches the gate off. Threshold must
	// not change while the gate is in use.
	Threshold int

	mu      sync.Mutex
	breaker breaker.Breaker
	timer   *time.Timer // admits operations later; nil before its first use
}

func (g *Gate) off() bool { return g == nil || g.Threshold < 0 }

// change makes a change, and admits the operations that may then retry.
func (g *Gate) change(do func(b *breaker.Breaker, now time.Time)) {
	if g.off() {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	do(&g.breaker, now)
	next := g.breaker.Admit(now)
	switch {
	case !next.IsZero() && g.timer == nil:
		g.timer = time.AfterFunc(next.Sub(now), func() { g.change(func(*breaker.Breaker, time.Time) {}) })
	case !next.IsZero():
		g.timer.Reset(next.Sub(now))
	case g.timer != nil:
		g.timer.Stop()
	}
}

// failed records that a request of o failed. The next probe waits as long as policy
// requires. random and retryAfter are those of o's own wait. A lone operation is
// therefore admitted when that wait ends: its failures are one more than its probes.
func (g *Gate) failed(o *breaker.Operation, policy Policy, random float64, retryAfter time.Duration) {
	g.change(func(b *breaker.Breaker, now time.Time) {
		b.Failed(o, now, g.Threshold, func(probes int) time.Duration { return policy.Wait(probes, random, retryAfter) })
	})
}

// succeeded records that a request of o succeeded.
func (g *Gate) succeeded(o *breaker.Operation) {
	g.change(func(b *breaker.Breaker, _ time.Time) { b.Succeeded(o) })
}

// Closed reports whether retries wait for a probe of the service.
func (g *Gate) Closed() bool {
	if g.off() {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.breaker.Closed()
}

// enter returns nil if o may retry now, and otherwise a channel that is closed
// when o may retry. A caller that stops waiting must call leave.
func (g *Gate) enter(o *breaker.Operation, patience time.Duration) <-chan struct{} {
	var turn chan struct{}
	g.change(func(b *breaker.Breaker, _ time.Time) {
		if b.Closed() {
			turn = make(chan struct{})
			b.Wait(o, patience, func() { close(turn) })
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
func (g *Gate) leave(o *breaker.Operation) {
	g.change(func(b *breaker.Breaker, now time.Time) { b.Leave(o, now) })
}

// ObjectRateLimit reports whether a reply means that one object was changed too often
// (https://cloud.google.com/storage/docs/gcs429). The service uses the same status and
// reason for limits on all requests. Only the message differs. In the XML API, the
// element Details has the message; it was recorded once:
// https://github.com/nextcloud/server/issues/12537.
func ObjectRateLimit(code int, reason, message string) bool {
	limited := code == 429 || code == 403 && reason == "rateLimitExceeded"
	return limited && (strings.HasPrefix(message, "The object ") || strings.HasPrefix(message, "Changing object "))
}
