package backoff

import (
	"container/list"
	"strings"
	"sync"
	"time"
)

// defaultThreshold is a compromise. With it, one request in ten that fails at
// random closes the gate after one failure in ten thousand, and 32 uploads that
// fail together still close it at once.
const defaultThreshold = 5

// NoGate is a gate that never closes. A [Transport] needs it to have no gate,
// because nil gives it a gate of its own.
var NoGate = &Gate{Threshold: -1}

// A Gate keeps operations that fail at the same time from multiplying the
// requests to a service that is down. All operations on one endpoint share one.
//
// The gate closes when several requests in a row fail, of more than one
// operation, with no success in between. While it is closed one operation
// probes at a time: it makes its retry, and the others wait. A wait at the gate
// costs no try. After a probe that failed the next one is made by the operation
// that has waited longest. It comes no sooner than the [Policy] says for that
// many failures in a row. A probe whose outcome is not known after
// Policy.Maximum does not hold up the next one.
//
// A success opens the gate step by step. Each retry that succeeds lets one more
// retry be under way than before: 1, 2, 4, 8 and so on at a time. When there
// can be as many as operations that fail the gate is open. A retry that fails
// while the gate opens halves the number.
//
// Only retries wait. A first request, and a request that continues an operation
// that makes progress, do not ask the gate. An operation that fails alone waits
// for its own backoff only. With the zero Policy, 32 operations that fail
// together make about 37 requests in 32 s and then one per 32 s in all. Without
// a gate they would make 160 in 32 s.
//
// A [Waiter] uses the gate. The zero value is ready to use. A Gate is safe for
// concurrent use and must not be copied. A nil *Gate never closes.
type Gate struct {
	// Threshold is the number of requests that must fail in a row, with no
	// success in between, to close the gate. 0 is 5. A negative number
	// switches the gate off. It must not change while the gate is in use.
	Threshold int

	mu       sync.Mutex
	row      int    // failures since the last success
	first    *place // the operation of the first of them; nil if there is none, or it ended
	several  bool   // another operation failed too
	failing  int    // operations that failed, and neither succeeded nor ended since
	limit    int    // retries that may be under way; 0: the gate is open
	underWay int    // retries that were let through while it was closed, and whose outcome is not known
	probes   int    // retries that failed since the last success

	// next is when a retry is let through even if limit of them are under
	// way. If limit is 1 none is let through before it.
	next    time.Time
	waiting list.List   // of *place; the front waits longest
	timer   *time.Timer // calls admit at next; nil before its first use
}

// A place is what a gate knows of one operation. Gate.mu guards it.
type place struct {
	failing  bool          // counted in Gate.failing
	retrying bool          // counted in Gate.underWay
	patience time.Duration // how long its retry may hold up the next one
	element  *list.Element // in Gate.waiting; nil if it does not wait
	turn     chan struct{} // closed when it is let through
}

func (g *Gate) off() bool { return g == nil || g.Threshold < 0 }

// failed notes that a request of p failed. The next probe waits as policy says.
// random and retryAfter are those of p's own wait, so that an operation that
// is alone finds its turn there when that wait ends: its failures are one more
// than its probes.
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
			// The first operation whose own wait ends is the prober.
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

// succeeded notes that a request of p succeeded.
func (g *Gate) succeeded(p *place) {
	if g.off() {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.row, g.first, g.several, g.probes = 0, nil, false, 0
	g.release(p)
	g.forget(p)
	if g.limit == 0 {
		return
	}
	g.limit++
	if g.limit > g.failing {
		g.limit = 0
	}
	g.admit(time.Now())
}

// enter returns nil if p may retry now, or a channel that is closed when it may.
// The caller must call leave if it does not wait for that.
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

// leave notes that p ended, or failed for a reason of its own. If it was its
// turn, the next operation takes it. When all have left, the gate is open: the
// next operation that fails does so alone.
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

// release ends p's retry, and reports whether one was under way. g.mu is held.
func (g *Gate) release(p *place) bool {
	if !p.retrying {
		return false
	}
	p.retrying = false
	g.underWay--
	return true
}

// forget removes p from the operations that fail, and reports whether it was
// one. g.mu is held.
func (g *Gate) forget(p *place) bool {
	if !p.failing {
		return false
	}
	p.failing = false
	g.failing--
	return true
}

// admit lets through as many operations as may retry now. g.mu is held.
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

// wake sets the timer. g.mu is held.
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
// often (https://cloud.google.com/storage/docs/gcs429). The service has the same
// status and reason for a limit that concerns all requests. Only the message
// differs.
func ObjectRateLimit(code int, reason, message string) bool {
	limited := code == 429 || code == 403 && reason == "rateLimitExceeded"
	return limited && strings.HasPrefix(message, "The object ") && strings.Contains(message, "rate limit")
}
