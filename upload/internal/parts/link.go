package parts

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// nearReply is the response time below which the service counts as near: a single
	// connection to it is usually fast enough.
	nearReply = 3 * time.Millisecond

	// nearReplies is the number of replies after which it is known whether the service is
	// near. The first one includes the time to connect.
	nearReplies = 3

	// FirstBytes is the size of the request that measures a single connection to a near
	// service, see [Link.Fast]. fastRate is the rate, in bytes per second, at which one
	// connection is fast enough.
	FirstBytes = 8 << 20
	fastRate   = 64 << 20

	// connectionMemory is the part of Link.Memory that one connection needs. Its buffers
	// take a quarter of it.
	connectionMemory = 4 << 20

	// oneSufficesFor is how long the tuner's result that one connection suffices is used.
	// The network may have changed later.
	oneSufficesFor = 10 * time.Minute

	// tuneEvery is the minimum length of an interval that the tuner observes. On a link
	// with long round trips an interval is longer, so that it has several of them.
	tuneEvery = 100 * time.Millisecond
)

// Link is what the files of an Uploader know of the link to the service. With Options.Auto,
// they share its connections.
type Link struct {
	Memory  int64                // bounds the connections
	Held    func() time.Duration // how long a rate limit held bytes back
	Limited func() bool          // reports whether one connection reaches the rate limit
	Failing func() bool          // reports whether the service fails

	fastest  atomic.Int64 // response time in nanoseconds; 0 until there is a reply
	replies  atomic.Int64 // how many were measured
	nearRate atomic.Int64 // bytes per second of a single connection to a near service; 0 until it is known

	mu   sync.Mutex
	pool *Pool // nil until it is needed
}

// Replied records the response time of a request without object data.
func (l *Link) Replied(d time.Duration) {
	defer l.replies.Add(1)
	for {
		was := l.fastest.Load()
		if was > 0 && was <= int64(d) || l.fastest.CompareAndSwap(was, max(int64(d), 1)) {
			return
		}
	}
}

// Measured reports whether there were enough replies to tell if the service is near.
func (l *Link) measured() bool { return l.replies.Load() >= nearReplies }

// Fast reports whether a single connection to a near service is fast enough. Its first request
// sent n bytes in the time took, and a rate limit held them back for the time held. If they do
// not show the rate, the connection counts as fast. rate is in bytes per second.
func (l *Link) Fast(n int64, took, held time.Duration) (rate int64, fast bool) {
	rate = math.MaxInt64
	if took > 0 && n >= FirstBytes/2 && held < took/10 {
		rate = int64(float64(n) / took.Seconds())
	}
	l.nearRate.Store(rate)
	return rate, rate >= fastRate
}

// Pool returns the pool for a file. With Auto all files share one, and otherwise each has
// its own.
func (l *Link) Pool(o Options) *Pool {
	if !o.Auto {
		return &Pool{tuner: tuner{level: max(o.Connections, 1)}}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pool == nil {
		limit := max(min(o.Connections, int(l.Memory/connectionMemory)), 1)
		l.pool = &Pool{tuner: newTuner(limit), held: l.Held, failing: l.Failing, every: l.interval}
	}
	return l.pool
}

// interval returns the length of an interval of the tuner.
func (l *Link) interval() time.Duration {
	return min(max(tuneEvery, 4*time.Duration(l.fastest.Load())), time.Second)
}

// whyUndivided returns a [Reason] if several connections would probably not be faster than
// one, and otherwise nil.
func (l *Link) whyUndivided(o Options) error {
	if !o.Auto {
		return nil
	}
	switch {
	case l.Pool(o).oneSuffices():
		return Reason{Text: "more connections did not raise the rate of an earlier file"}
	case l.Limited():
		return Reason{Text: "one connection reaches the rate limit"}
	}
	fastest, rate := time.Duration(l.fastest.Load()), l.nearRate.Load()
	if fastest == 0 || fastest >= nearReply || rate > 0 && rate < fastRate {
		return nil
	}
	return Reason{
		Text:       fmt.Sprintf("the service answers within %v, so that one connection is fast enough", fastest.Round(10*time.Microsecond)),
		Unmeasured: rate == 0,
	}
}
