package backoff

import (
	"container/list"
	"strings"
	"sync"
	"time"
)

// defaultThreshold is a compromise. If one request in ten fails at random, one
// failure in ten thousand closes the gate. If 32 uploads fail together, the
// gate closes at once.
const defaultThreshold = 5

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

	mu       sync.Mutex
	row      int    // failures since the last success
	first    *place // the operation of the first of these failures; nil if there is none, or if it ended
	several  bool   // another operation failed too
	failing  int    // operations that failed and have not succeeded or ended since
	limit    int    // retries that may be under way; 0 if the gate is open
	underWay int    // retries that were admitted while the gate was closed, and whose outcome is not known
	probes   int    // retries that failed since the last successful one

	// next is the time at which a retry is admitted even if limit retries are under way.
	// If limit is 1, no retry is admitted earlier.
	next    time.Time
	waiting list.List   // of *place; the front has waited longest
	timer   *time.Timer // calls admit at next; nil before its first use
}

// A place is the state of one operation at a gate. Gate.mu guards it.
type place struct {
	failing  bool          // counted in Gate.failing
	retrying bool          // counted in Gate.underWay
	patience time.Duration // how long its retry may delay the next one
	element  *list.Element // in Gate.waiting; nil if the operation does not wait
	turn     chan struct{} // closed when the operation is admitted
}

func (g *Gate) off() bool { return g == nil || g.Threshold < 0 }

// failed records that a request of p failed. The next probe waits as long as policy
// requires. random and retryAfter are those of p's own wait. A lone operation is
// therefore admitted when that wait ends: its failures are one more than its probes.
func (g *Gate) failed(p *place, policy Policy, random float64, retryAfter time.Duration) {
	if g.off() {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	retried := g.release(p)
	if !p.failing {
		p.failing = true
		g.failing++
	}
	g.row++
	if g.first == nil {
		g.first = p
	}
	g.several = g.several || g.first != p
	switch {
	case g.limit == 0:
		threshold := g.Threshold
		if threshold == 0 {
			threshold = defaultThreshold
		}
		if g.several && g.row >= threshold {
			// The first operation whose own wait ends makes the probe.
			g.limit, g.next = 1, now
		}
	case retried:
		g.limit /= 2
		if g.limit <= 1 {
			g.limit = 1
			g.next = now.Add(policy.Wait(g.probes, random, retryAfter))
			g.probes++
		}
	}
	g.admit(now)
}

// succeeded records that a request of p succeeded. Only the success of a retry
// opens the gate. The first requests of other operations may be of a kind that
// does not fail, such as the start of a session while data is refused.
func (g *Gate) succeeded(p *place) {
	if g.off() {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.row, g.first, g.several = 0, nil, false
	g.release(p)
	if !g.forget(p) || g.limit == 0 {
		return
	}
	g.probes = 0
	g.limit++
	if g.limit > g.failing {
		g.limit = 0
	}
	g.admit(time.Now())
}

// Closed reports whether retries wait for a probe of the service.
func (g *Gate) Closed() bool {
	if g.off() {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.limit > 0
}

// enter returns nil if p may retry now, and otherwise a channel that is closed
// when p may retry. A caller that stops waiting must call leave.
func (g *Gate) enter(p *place, patience time.Duration) <-chan struct{} {
	if g.off() {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.limit == 0 {
		return nil
	}
	p.patience, p.turn = patience, make(chan struct{})
	p.element = g.waiting.PushBack(p)
	g.admit(time.Now())
	if p.element == nil {
		return nil
	}
	return p.turn
}

// leave records that p ended, or failed for a reason that does not concern the
// service. If p was admitted, the next operation is admitted instead. The gate
// opens when all failing operations have left, because the next failure is that
// of a lone operation.
func (g *Gate) leave(p *place) {
	if g.off() {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if p.element != nil {
		g.waiting.Remove(p.element)
		p.element = nil
	}
	released := g.release(p)
	if forgot := g.forget(p); !released && !forgot {
		return
	}
	now := time.Now()
	switch {
	case g.failing == 0:
		g.row, g.first, g.several, g.probes, g.limit = 0, nil, false, 0, 0
	case released && g.underWay == 0:
		g.next = now
	}
	if g.first == p {
		g.first = nil
	}
	g.admit(now)
}

// release ends p's retry, and reports whether one was under way. The caller
// holds g.mu.
func (g *Gate) release(p *place) bool {
	if !p.retrying {
		return false
	}
	p.retrying = false
	g.underWay--
	return true
}

// forget removes p from the failing operations, and reports whether it was one.
// The caller holds g.mu.
func (g *Gate) forget(p *place) bool {
	if !p.failing {
		return false
	}
	p.failing = false
	g.failing--
	return true
}

// admit admits all waiting operations that may retry now. The caller holds
// g.mu.
func (g *Gate) admit(now time.Time) {
	for g.waiting.Len() > 0 {
		free := g.limit == 0 || g.limit > 1 && g.underWay < g.limit
		if !free && now.Before(g.next) {
			g.wake(g.next.Sub(now))
			return
		}
		p := g.waiting.Remove(g.waiting.Front()).(*place)
		p.element = nil
		if g.limit > 0 {
			p.retrying = true
			g.underWay++
			g.next = now.Add(p.patience)
		}
		close(p.turn)
	}
	if g.timer != nil {
		g.timer.Stop()
	}
}

// wake calls admit again after a duration. The caller holds g.mu.
func (g *Gate) wake(after time.Duration) {
	if g.timer != nil {
		g.timer.Reset(after)
		return
	}
	g.timer = time.AfterFunc(after, func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.admit(time.Now())
	})
}

// ObjectRateLimit reports whether a reply means that one object was changed too
// often (https://cloud.google.com/storage/docs/gcs429). The service uses the
// same status and reason for limits on all requests. Only the message differs. In the
// XML API it is that of the Details, which was recorded once:
// https://github.com/nextcloud/server/issues/12537.
func ObjectRateLimit(code int, reason, message string) bool {
	limited := code == 429 || code == 403 && reason == "rateLimitExceeded"
	return limited && (strings.HasPrefix(message, "The object ") || strings.HasPrefix(message, "Changing object "))
}
