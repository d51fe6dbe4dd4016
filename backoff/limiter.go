package backoff

import (
	"container/list"
	"context"
	"math"
	"sync"
	"time"
)

// The default bounds of a Limiter.
const (
	defaultFirstLimit = 32
	defaultMaxLimit   = 1024
)

const (
	// limitGain is the least share of a change of the limit by which throughput must follow. It is
	// a tenth: a limit that is 50 % higher is kept if throughput is 5 % higher, and one that is a
	// third lower is kept if throughput is at most 3.3 % lower.
	limitGain = 0.1

	// limitDoublingGain is the same for the doublings at the start. Their windows are short, and
	// differ by more than a tenth with the same limit.
	limitDoublingGain = 0.25

	limitStep     = 1.5 // factor between two limits that are compared
	limitDoubling = 2.0 // the same from the start until throughput stops growing

	shortWindow  = 100 * time.Millisecond // least length of a window while the limit grows
	longWindow   = time.Second            // the same at other times
	streamWindow = 3 * time.Second        // length of a window in which hardly any request ended

	// limitRefusals is the share of refused requests that does not lower the limit.
	limitRefusals = 0.02

	// limitOutage is the share of refused requests from which the limit falls below First.
	limitOutage = 0.8

	// flights is how often as many requests end in a long window as the limit permits. Requests that began together
	// end together, so that a window of two flights may show half as many again as its time permits. With four, a
	// high limit grows too slowly (TestWriters of package retrysim).
	flights = 3

	// A window with fewer replies does not measure the rate of replies.
	enoughReplies = 8

	shortHold, longHold = 2, 16 // windows of a second between a change that did not help and the next one
)

// A Limiter finds how many requests should be in flight. The limit grows while throughput
// grows, and shrinks if the service refuses requests, or if fewer requests would have the same
// throughput. By Little's law (requests in flight = throughput * latency), the requests in
// excess then only raise the latency.
//
// The caller calls [Limiter.Acquire] or [Limiter.Start] before each request, and reports what
// happens to it. Throughput is the number of requests that end per second, or of their bytes,
// whichever grows more.
//
// # The rule
//
// The rule is a gradient ascent on throughput, like the hill climbing of the .NET thread pool (Hellerstein, Morrison
// and Eilebrecht, "Optimizing Concurrency Levels in the .NET ThreadPool", 2008). The limit is changed, and the
// change is kept if throughput follows. Throughput is measured over a window. When as many requests have ended as
// the limit permits, the window ends with the next pause between two replies. At first the limit doubles, as in the
// slow start of TCP (https://www.rfc-editor.org/rfc/rfc5681), as long as each doubling raises throughput by a
// quarter, as in the startup of BBR (https://datatracker.ietf.org/doc/draft-ietf-ccwg-bbr/). Later the limit changes
// by a factor of 1.5, and throughput must follow by at least a tenth of the change; if it does not, the limit stays
// for 2 to 16 windows, or until throughput changes by half. A window of n seconds counts as n windows. After a change
// that did not help, a window needs three times as many requests, and at least a second. The first window, in which
// connections are made, does not count.
//
// If a share f of the requests of a window is refused, the limit is multiplied by 1 - f/2, as in
// DCTCP (https://www.rfc-editor.org/rfc/rfc8257). A total outage halves the limit with each
// window. A share of up to 2 % changes nothing, as in BBR. While more than a fifth of the
// requests is accepted, the limit does not fall below First. Otherwise a service that refuses
// requests at random, however many arrive, would get one at a time.
//
// Only Acquire reads a clock: the callers of other methods pass the time. Times that go
// backwards count as a clock that stands still. The zero value is ready to use. A Limiter is safe
// for concurrent use, and must not be copied after its first use.
type Limiter struct {
	// First is the limit at the start; 0 means 32. Max is the highest limit; 0 means 1024. They
	// must not change after the first call.
	First, Max int

	mu       sync.Mutex
	clock    steadyClock
	limit    float64 // 0 before the first call
	inFlight int
	settling int // replies to requests of the limit before, which must arrive before the window counts
	window   window
	before   measure // at the limit with which the next one is compared; zero if there is none
	trial    bool    // limit is compared with before.limit
	warm     bool    // a window has ended in which connections were made
	climbing bool    // windows are short, because the limit grows
	started  bool    // the first doubling has ended
	down     bool    // the next change lowers the limit
	hold     int     // windows before the next change
	patience int     // length of the next hold

	waiting list.List // of chan struct{}: one for each call of Acquire that waits; the front has waited longest
}

// A window is what happened since a time.
type window struct {
	begin, last time.Duration
	area        float64 // requests in flight * seconds
	replies     int     // requests that ended
	refused     int
	bytes       int64
	streamed    bool // some of the bytes were reported before their request ended

	reply     time.Duration // when the last request ended or was refused
	longest   time.Duration // between two replies
	areaThen  float64       // area and bytes at that time
	bytesThen int64
}

// A measure is the throughput with a limit.
type measure struct {
	limit          float64
	replies, bytes float64 // per second; 0 if it was not measured
}

// Limit returns how many requests may be in flight.
func (l *Limiter) Limit() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.begin()
	return int(l.limit)
}

// InFlight returns how many requests have started and not ended.
func (l *Limiter) InFlight() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.inFlight
}

// Start returns true, and counts a request in flight, if another request may start. If it
// returns false, the caller tries again when Ended, Progress or Refused was called.
func (l *Limiter) Start(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pass(now)
	if l.inFlight >= int(l.limit) {
		return false
	}
	l.inFlight++
	return true
}

// Acquire waits until another request may start, and counts it in flight. Callers that wait get
// their turns in order. If ctx is done, Acquire returns its cause, and nothing was counted.
func (l *Limiter) Acquire(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	l.mu.Lock()
	l.pass(time.Now())
	if l.waiting.Len() == 0 && l.inFlight < int(l.limit) {
		l.inFlight++
		l.mu.Unlock()
		return nil
	}
	turn := make(chan struct{})
	place := l.waiting.PushBack(turn)
	l.mu.Unlock()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-turn: // meanwhile
		l.pass(time.Now())
		l.inFlight--
		l.admit()
	default:
		l.waiting.Remove(place)
	}
	return context.Cause(ctx)
}

// admit gives their turns to callers of Acquire. The caller holds l.mu.
func (l *Limiter) admit() {
	for l.inFlight < int(l.limit) && l.waiting.Len() > 0 {
		l.inFlight++
		close(l.waiting.Remove(l.waiting.Front()).(chan struct{}))
	}
}

// Ended records that a request ended, and that the service got that many bytes since the last
// call of Progress for it. A request that failed for a reason that does not concern the service
// ends with 0 bytes.
func (l *Limiter) Ended(now time.Time, bytes int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pass(now)
	l.endWindow(true)
	l.inFlight = max(l.inFlight-1, 0)
	l.window.replies++
	l.window.bytes += max(bytes, 0)
	l.replied()
	l.admit()
}

// Progress records bytes that the service got while their request is in flight. Only requests
// that take seconds need it.
func (l *Limiter) Progress(now time.Time, bytes int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pass(now)
	l.window.bytes += max(bytes, 0)
	l.window.streamed = true
	if l.settling > 0 && l.inFlight <= int(l.limit) {
		l.settling = 0
		l.next()
	}
	if w := l.window; l.settling == 0 && w.streamed && w.last-w.begin >= streamWindow {
		l.judge(w)
		l.next()
	}
	l.admit()
}

// Refused records that the service refused a request that is in flight, with 429 or 503. The
// request stays in flight, because a retry follows, until Ended is called.
func (l *Limiter) Refused(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pass(now)
	l.endWindow(true)
	l.window.refused++
	l.replied()
	l.admit()
}

func (l *Limiter) begin() {
	if l.limit == 0 {
		l.limit = l.first()
		l.climbing, l.patience = true, shortHold
	}
}

func (l *Limiter) first() float64 {
	return min(float64(positive(l.First, defaultFirstLimit)), l.highest())
}

func (l *Limiter) highest() float64 { return float64(positive(l.Max, defaultMaxLimit)) }

func positive(n, otherwise int) int {
	if n > 0 {
		return n
	}
	return otherwise
}

// pass moves the clock. The caller holds l.mu.
func (l *Limiter) pass(now time.Time) {
	l.begin()
	past := l.clock.read(now)
	l.window.area += float64(l.inFlight) * (past - l.window.last).Seconds()
	l.window.last = past
}

// replied records when a reply arrived. The caller holds l.mu.
func (l *Limiter) replied() {
	l.window.longest = max(l.window.longest, l.window.last-max(l.window.reply, l.window.begin))
	l.window.reply, l.window.areaThen, l.window.bytesThen = l.window.last, l.window.area, l.window.bytes
	if l.settling > 0 {
		if l.settling--; l.settling == 0 && l.window.refused == 0 {
			l.next()
			return
		}
	}
	l.endWindow(false)
}

// next begins a window. The caller holds l.mu.
func (l *Limiter) next() { l.window = window{begin: l.clock.past, last: l.clock.past} }

// endWindow ends the window with its last reply, if it is full. further reports that another reply arrives now. The
// caller holds l.mu.
//
// Requests that begin together end together. Of three in flight, a window that ended in the middle of their replies
// would have too many for its time. It ends before a pause, except when it must be short.
func (l *Limiter) endWindow(further bool) {
	w := l.window
	replies, span := w.replies+w.refused, w.reply-w.begin
	usual := (span - w.longest) / time.Duration(max(replies, 1)) // between two replies, without an interruption
	if pause := l.started && w.refused == 0; pause != further || pause && 2*(w.last-w.reply) < usual {
		return
	}
	least, enough := longWindow, max(flights*int(l.limit), enoughReplies)
	if l.climbing || w.refused > 0 {
		least, enough = shortWindow, max(int(l.limit), enoughReplies)
	}
	if l.settling > 0 && w.refused == 0 || replies < enough || span < least {
		return
	}
	next := window{begin: w.reply, last: w.last, area: w.area - w.areaThen, bytes: w.bytes - w.bytesThen, streamed: w.bytes > w.bytesThen}
	w.last, w.area, w.bytes = w.reply, w.areaThen, w.bytesThen
	l.judge(w)
	l.window = next
}

// judge changes the limit as the window w requires. The caller holds l.mu.
func (l *Limiter) judge(w window) {
	span := w.last - w.begin
	got := measure{limit: l.limit, bytes: float64(w.bytes) / span.Seconds()}
	if w.replies >= enoughReplies {
		got.replies = float64(w.replies) / span.Seconds()
	}
	inFlight := w.area / span.Seconds()
	refused := float64(w.refused) / float64(max(w.refused+w.replies, 1))
	switch {
	case refused > limitRefusals:
		l.shrink(refused)
	case inFlight > 1.1*math.Floor(l.limit)+0.5:
		// The limit was lowered, and requests from before are in flight.
	case inFlight < 0.75*math.Floor(l.limit): // Start permits whole requests
		// The caller has too few requests to measure the limit.
		if l.trial {
			l.stay()
		}
	case !l.warm:
		// Each connection that exists makes the next window faster, whatever its limit is.
		l.warm = true
	case l.trial && l.follows(got):
		l.before, l.patience, l.climbing = got, shortHold, !l.down
		l.change()
	case l.trial:
		l.stay()
	default:
		if l.before.limit == l.limit && !l.before.differs(got) {
			got.replies = blend(l.before.replies, got.replies)
			got.bytes = blend(l.before.bytes, got.bytes)
		} else if l.before.limit == l.limit {
			l.hold, l.patience = 0, shortHold // the service or the link has changed
		}
		if l.before = got; l.hold > 0 {
			l.hold -= max(1, int(span/longWindow))
			return
		}
		l.change()
	}
}

// shrink lowers the limit, because that share of the requests was refused. The caller holds
// l.mu.
func (l *Limiter) shrink(share float64) {
	lowest := 1.0
	if share < limitOutage {
		lowest = min(l.limit, l.first())
	}
	l.limit = max(l.limit*(1-share/2), lowest)
	l.settling, l.before, l.trial, l.started, l.down = 0, measure{}, false, true, false
	// After an outage the limit must grow again quickly. After a few refusals it must not.
	if l.climbing, l.hold = share >= 0.5, 0; l.climbing {
		l.patience = shortHold
	} else {
		l.hold = l.patience
	}
}

// follows reports whether throughput followed the change of the limit. Either rate suffices,
// because the sizes of requests change: larger ones have more bytes and fewer replies. A rate that
// was measured only after the change proves nothing.
func (l *Limiter) follows(got measure) bool {
	gain := limitGain
	if !l.started {
		gain = limitDoublingGain
	}
	enough := 1 + (got.limit/l.before.limit-1)*gain
	return ratio(got.replies, l.before.replies) >= enough || ratio(got.bytes, l.before.bytes) >= enough
}

// differs reports whether the rates of n are much higher or lower than those of m, which has the
// same limit. A rate of 0 was not measured.
func (m measure) differs(n measure) bool {
	near := func(a, b float64) bool { return a > 0 && b > 0 && max(a, b) <= 1.5*min(a, b) }
	return !near(m.replies, n.replies) && !near(m.bytes, n.bytes)
}

// ratio returns a/b, or 0 if b was not measured.
func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// blend returns the mean of two rates. A rate of 0 was not measured.
func blend(a, b float64) float64 {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return (a + b) / 2
}

// change tries another limit. The caller holds l.mu.
func (l *Limiter) change() {
	factor := limitStep
	if !l.started {
		factor = limitDoubling
	}
	limit := min(max(l.limit*factor, l.limit+1), l.highest())
	if l.down {
		limit = max(min(l.limit/limitStep, l.limit-1), 1)
	}
	if limit == l.limit {
		l.stay()
		return
	}
	if l.started {
		l.settling = l.inFlight // the first replies are to requests that started at the limit before
	}
	l.limit, l.trial = limit, true
}

// stay returns to the limit before the last change, and tries the other direction after a while.
// The caller holds l.mu.
func (l *Limiter) stay() {
	if l.trial {
		l.limit = l.before.limit
	}
	// The doubling may have gone too far: fewer requests may have the same throughput.
	l.down = !l.down
	l.trial, l.climbing, l.started, l.settling = false, false, true, 0
	l.hold = l.patience
	l.patience = min(2*l.patience, longHold)
}
