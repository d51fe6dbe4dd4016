// Package atrisk bounds the bytes at risk: those that must be sent again if the process dies now. A
// [Bound] owns them, and each transfer has a [Risk] of it. The package knows no requests and no files.
package atrisk

import (
	"cmp"
	"container/list"
	"context"
	"sync"
	"time"
)

const (
	// First is the bound of a [Bound] before the first commit. A process that runs for seconds only then
	// commits something: over a link of 10 MiB/s, after 1.6 s. Least is the bound over a slow link after some
	// commits.
	First = 16 << 20
	Least = 64 << 20

	// recentTime is how long a commit raises the bound, by recentFactor times its bytes: the bound is ten seconds of the
	// rate. With a longer time, it would follow the rate of a link more slowly.
	recentTime   = 5 * time.Second
	recentFactor = 2

	// unknown is what a request of a session takes when it begins, and as long as the system does not tell what
	// the socket holds.
	unknown = 1 << 20
)

// Bound is the bound of the bytes at risk. Uploads take bytes from it, and give them back when they are committed.
//
// The bound is ten seconds of the rate at which bytes were committed in the last five, and at least 64 MiB. It
// begins with 16 MiB, and grows to 64 MiB with the bytes that are committed. Beyond the bound nothing new begins. What
// has begun continues.
//
// The zero value is ready to use. A Bound is safe for concurrent use, and must not be copied. A nil
// *Bound has no bound.
type Bound struct {
	Scale Scale

	mu      sync.Mutex
	taken   [riskKinds]int64
	waiting [riskKinds]list.List // of *riskWaiter, in order
	total   int64                // committed
	recent  recentBytes
}

// Scale replaces the constants of a [Bound] in a simulation with smaller files. 0 is the constant.
type Scale struct {
	First, Least, Unknown int64
}

// Amounts returns how many bytes are taken by sessions and by whole requests, and the bound.
func (b *Bound) Amounts() (sessions, whole, bound int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.taken[sessionRisk], b.whole(), b.bound()
}

// riskKind is a kind of transfer. Each has a queue of its own.
type riskKind int

const (
	insertRisk  riskKind = iota // an object in one request
	partRisk                    // a part of a multipart upload
	sessionRisk                 // a session
	riskKinds   = 3
)

// whole returns what is taken by requests whose bytes are kept together or not at all. The caller holds b.mu.
func (b *Bound) whole() int64 { return b.taken[insertRisk] + b.taken[partRisk] }

// riskWaiter waits in [Risk.Take].
type riskWaiter struct {
	risk  *Risk
	ready chan struct{} // closed when the bytes are taken
}

// Risk is what one transfer has at risk. The methods of a nil *Risk do nothing.
type Risk struct {
	of    *Bound
	kind  riskKind
	first int64     // what Take takes
	n     int64     // taken
	begun time.Time // when Take took the bytes
}

// Insert returns the risk of a request of n bytes that makes an object. The service keeps the bytes as a whole or not at
// all. Take takes all of them: if it took them while they are sent, all requests would begin before there is anything at
// risk. A request of any size may begin if no other one is under way.
func (b *Bound) Insert(n int64) *Risk { return b.risk(Risk{of: b, kind: insertRisk, first: n}) }

// Part is [Bound.Insert] for a part of a multipart upload. Parts and inserts take turns: whichever have taken less are
// next. All parts of a large file may wait at a time, and would keep small files waiting until the large one ends.
func (b *Bound) Part(n int64) *Risk { return b.risk(Risk{of: b, kind: partRisk, first: n}) }

// Session returns the risk of a transfer through a session, of which the service keeps what arrives.
func (b *Bound) Session() *Risk {
	if b == nil {
		return nil
	}
	return b.risk(Risk{of: b, kind: sessionRisk, first: cmp.Or(b.Scale.Unknown, unknown)})
}

func (b *Bound) risk(r Risk) *Risk {
	if b == nil {
		return nil
	}
	return &r
}

// Take waits until the bound permits that the transfer begins, and takes its bytes, unless it has some. A failed request
// must give them back before a wait for the next try, with End: its bytes are no longer at risk. It must not keep other
// uploads from their retries. The error is the cause of ctx.
func (r *Risk) Take(ctx context.Context) error {
	if r == nil {
		return nil
	}
	b := r.of
	b.mu.Lock()
	if r.n > 0 {
		b.set(r, max(r.n, r.first))
		b.mu.Unlock()
		return nil
	}
	queue, w := &b.waiting[r.kind], &riskWaiter{r, make(chan struct{})}
	e := queue.PushBack(w)
	b.admit()
	b.mu.Unlock()
	select {
	case <-w.ready:
		return nil
	default:
	}
	select {
	case <-w.ready:
		return nil
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case <-w.ready:
		b.set(r, 0)
	default:
		queue.Remove(e)
	}
	b.admit()
	return context.Cause(ctx)
}

// bound returns the bound. The caller holds b.mu.
func (b *Bound) bound() int64 {
	return max(recentFactor*b.recent.sum(time.Now()), min(cmp.Or(b.Scale.First, First)+b.total, b.least()))
}

// least returns the bound over a slow link after some commits.
func (b *Bound) least() int64 { return cmp.Or(b.Scale.Least, Least) }

// permits reports whether r may begin. The caller holds b.mu.
func (b *Bound) permits(r *Risk) bool {
	bound, whole := b.bound(), b.whole()
	all := whole + b.taken[sessionRisk] + r.first
	switch {
	case r.kind == sessionRisk: // it may begin before the first commit, because most of its bytes are not at risk
		return all <= max(bound, b.least())
	case whole == 0:
		return true // however large it is
	default:
		// Sessions that fill their sockets must not keep it waiting, nor a sequence of small requests the first session.
		return all <= bound && b.waiting[sessionRisk].Len() == 0 || whole+r.first <= bound/2
	}
}

// set sets how many bytes r has taken. The caller holds b.mu.
func (b *Bound) set(r *Risk, n int64) {
	b.taken[r.kind] += n - r.n
	if r.n == 0 {
		r.begun = time.Now()
	}
	r.n = n
}

// admit begins the transfers that wait, as far as the bound permits. Sessions, and other requests, have half of the bound
// if they need it. The caller holds b.mu.
func (b *Bound) admit() {
	for b.begin(sessionRisk) {
	}
	for b.begin(b.nextWhole()) {
	}
}

// nextWhole returns whether inserts or parts are next. The caller holds b.mu.
func (b *Bound) nextWhole() riskKind {
	if b.waiting[insertRisk].Len() == 0 || b.waiting[partRisk].Len() > 0 && b.taken[partRisk] < b.taken[insertRisk] {
		return partRisk
	}
	return insertRisk
}

// begin begins the first transfer of a kind that waits, and reports whether there is one and the bound permits it. The
// caller holds b.mu.
func (b *Bound) begin(kind riskKind) bool {
	e := b.waiting[kind].Front()
	if e == nil {
		return false
	}
	w := e.Value.(*riskWaiter)
	if !b.permits(w.risk) {
		return false
	}
	b.set(w.risk, w.risk.first)
	b.waiting[kind].Remove(e)
	close(w.ready)
	return true
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

// HoldUnknown is [Risk.Hold] if the system does not tell what the socket holds.
func (r *Risk) HoldUnknown() {
	if r != nil {
		r.Hold(r.first)
	}
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
	if r.kind == sessionRisk {
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
