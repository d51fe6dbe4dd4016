package engine

import (
	"container/list"
	"context"
	"sync"
	"time"
)

const (
	// FirstAtRisk is the bound of an [AtRisk] before the first commit. A process that runs for seconds only then
	// commits something: over a link of 10 MiB/s, after 1.6 s. LeastAtRisk is the bound over a slow link after some
	// commits.
	FirstAtRisk = 16 << 20
	LeastAtRisk = 64 << 20

	// recentTime is how long a commit raises the bound, by recentFactor times its bytes: the bound is ten seconds of the
	// rate. With a longer time, it would follow the rate of a link more slowly.
	recentTime   = 5 * time.Second
	recentFactor = 2

	// sessionAtRisk is what a request of a session takes when it begins, and as long as the system does not tell what
	// the socket holds.
	sessionAtRisk = 1 << 20
)

// AtRisk bounds the bytes at risk: those that must be sent again if the process dies now. Uploads
// take bytes from it, and give them back when they are committed.
//
// The bound is ten seconds of the rate at which bytes were committed in the last five, and at least 64 MiB. It
// begins with 16 MiB, and grows to 64 MiB with the bytes that are committed. Beyond the bound nothing new begins. What
// has begun continues.
//
// The zero value is ready to use. An AtRisk is safe for concurrent use, and must not be copied. A nil
// *AtRisk has no bound.
type AtRisk struct {
	mu       sync.Mutex
	whole    int64 // taken by requests whose bytes are kept together or not at all
	sessions int64 // taken by requests of sessions
	total    int64 // committed
	recent   recentBytes
	waiting  struct{ whole, sessions list.List } // of *riskWaiter, in order
}

// riskWaiter waits in [Risk.Take].
type riskWaiter struct {
	risk  *Risk
	ready chan struct{} // closed when the bytes are taken
}

// Risk is what one transfer has at risk. The methods of a nil *Risk do nothing.
type Risk struct {
	of      *AtRisk
	session bool
	first   int64     // what Take takes
	n       int64     // taken
	begun   time.Time // when Take took the bytes
}

// Whole returns the risk of a request of n bytes that the service keeps as a whole or not at all, such as that of a
// part of a multipart upload. Take takes all n bytes of the request: if it took them while they are sent, all requests
// would begin before there is anything at risk. A request of any size may begin if no other one is under way.
func (a *AtRisk) Whole(n int64) *Risk { return a.risk(Risk{of: a, first: n}) }

// Session returns the risk of a transfer through a session, of which the service keeps what arrives.
func (a *AtRisk) Session() *Risk { return a.risk(Risk{of: a, session: true, first: sessionAtRisk}) }

func (a *AtRisk) risk(r Risk) *Risk {
	if a == nil {
		return nil
	}
	return &r
}

// Take waits until the bound permits that the transfer begins, and takes its bytes, unless it has some. A failed request
// must give them back before a wait for the next try, with End: its bytes are no longer at risk. It must not keep other
// uploads from their tries.
func (r *Risk) Take(ctx context.Context) error {
	if r == nil {
		return nil
	}
	a := r.of
	a.mu.Lock()
	queue := &a.waiting.whole
	if r.session {
		queue = &a.waiting.sessions
	}
	if r.n > 0 || queue.Len() == 0 && a.permits(r) {
		a.set(r, max(r.n, r.first))
		a.mu.Unlock()
		return nil
	}
	w := &riskWaiter{r, make(chan struct{})}
	e := queue.PushBack(w)
	a.mu.Unlock()
	select {
	case <-w.ready:
		return nil
	case <-ctx.Done():
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	select {
	case <-w.ready:
		a.set(r, 0)
	default:
		queue.Remove(e)
	}
	a.admit()
	return NewInterruption(ctx, nil)
}

// Taken returns how many bytes are taken, and the bound.
func (a *AtRisk) Taken() (taken, bound int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.whole + a.sessions, a.bound()
}

// bound returns the bound. The caller holds a.mu.
func (a *AtRisk) bound() int64 {
	return max(recentFactor*a.recent.sum(time.Now()), min(FirstAtRisk+a.total, LeastAtRisk))
}

// permits reports whether r may begin. The caller holds a.mu.
func (a *AtRisk) permits(r *Risk) bool {
	bound := a.bound()
	fits := a.whole+a.sessions+r.first <= bound
	switch whole := a.whole + r.first; {
	case r.session: // it may begin before the first commit, because most of its bytes are not at risk
		return fits || a.whole+a.sessions+r.first <= LeastAtRisk
	case a.whole == 0:
		return true // however large it is
	default:
		return fits || whole <= bound/2 // sessions that fill their sockets must not keep it waiting
	}
}

// set sets how many bytes r has taken. The caller holds a.mu.
func (a *AtRisk) set(r *Risk, n int64) {
	if r.session {
		a.sessions += n - r.n
	} else {
		a.whole += n - r.n
	}
	if r.n == 0 {
		r.begun = time.Now()
	}
	r.n = n
}

// admit begins the transfers that wait, in order, as far as the bound permits. Sessions do not keep other requests
// waiting, nor the other way round. The caller holds a.mu.
func (a *AtRisk) admit() {
	for _, queue := range []*list.List{&a.waiting.whole, &a.waiting.sessions} {
		for e := queue.Front(); e != nil; e = queue.Front() {
			w := e.Value.(*riskWaiter)
			if !a.permits(w.risk) {
				break
			}
			a.set(w.risk, w.risk.first)
			queue.Remove(e)
			close(w.ready)
		}
	}
}

// Hold sets how many bytes of a transfer that has begun are at risk now. It never waits.
func (r *Risk) Hold(n int64) {
	if r == nil {
		return
	}
	r.of.mu.Lock()
	defer r.of.mu.Unlock()
	r.of.set(r, n)
	r.of.admit()
}

// Committed records that n bytes are no longer at risk. It raises the bound. The bytes of a whole request count for
// the time in which they were sent: over a slow link, many requests end together that began together.
func (r *Risk) Committed(n int64) {
	if r == nil || n <= 0 {
		return
	}
	r.of.mu.Lock()
	defer r.of.mu.Unlock()
	r.of.total += n
	now := time.Now()
	if r.session {
		r.begun = now
	}
	r.of.recent.add(r.begun, now, n)
	r.of.admit()
}

// End gives back what is still taken.
func (r *Risk) End() { r.Hold(0) }

// recentBytes counts bytes in recentTime.
type recentBytes struct {
	steps [recentSteps]struct {
		step  int64 // number of the step of time; 0 if there is none
		bytes int64
	}
}

// recentSteps is the number of steps of time in recentTime, and one that has begun.
const recentSteps = 20 + 1

func stepOf(now time.Time) int64 { return now.UnixNano() / int64(recentTime/(recentSteps-1)) }

// add counts n bytes, evenly over the time from since to now.
func (b *recentBytes) add(since, now time.Time, n int64) {
	last := stepOf(now)
	steps := last - stepOf(since) + 1
	for step := last - min(steps, recentSteps) + 1; step <= last; step++ {
		at := &b.steps[step%recentSteps]
		if at.step != step {
			at.step, at.bytes = step, 0
		}
		at.bytes += n / steps
	}
}

// sum returns the bytes that were counted in the last recentTime.
func (b *recentBytes) sum(now time.Time) (n int64) {
	for oldest, i := stepOf(now)-recentSteps, 0; i < recentSteps; i++ {
		if s := b.steps[i]; s.step > oldest {
			n += s.bytes
		}
	}
	return n
}
