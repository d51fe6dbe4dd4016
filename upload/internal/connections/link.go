package connections

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// nearReply is the response time below which the service counts as near: a single
	// connection to it is usually fast enough.
	nearReply = 3 * time.Millisecond

	// longReply is the response time from which a link counts as long. If it also loses packets, a connection
	// may take more than ten seconds for a part of a multipart upload.
	longReply = 100 * time.Millisecond

	// firstBytes is how many bytes show the rate of a single connection, see [Link.Measure]. As many
	// before them fill the buffers on the way. One connection is fast enough from these rates, in bytes per second. A near
	// service reaches the first one on a slow processor. Over a distance, several connections may
	// be faster up to a rate at which the processor is the limit.
	firstBytes  = 8 << 20
	fastRate    = 64 << 20
	fastRateFar = 512 << 20

	// Discardable is the most bytes of a session that are discarded because one connection is slow. It is what a
	// measurement takes.
	Discardable = 2 * firstBytes

	// connectionMemory is the part of Link.Memory that allows one connection. The buffers of a
	// connection take twice as much, and are not in Link.Memory. 256 connections over a link
	// that has room for them took 440 MiB of resident memory with the default of 128 MiB.
	connectionMemory = 512 << 10

	// tuneEvery is the minimum length of an interval that the tuner observes. On a link
	// with long round trips an interval is longer, so that it has several of them.
	tuneEvery = 100 * time.Millisecond
)

// Max bounds the connections of a file, and of a Link.
const Max = 256

// Link is what the files of an Uploader know of the link to the service. It has the pool that they share.
type Link struct {
	Memory  int64                // bounds the connections
	Held    func() time.Duration // how long a rate limit held bytes back
	Limited func() bool          // reports whether one connection reaches the rate limit
	Failing func() bool          // reports whether the service fails

	fastest atomic.Int64                 // response time in nanoseconds; 0 until there is a reply
	single  atomic.Pointer[measuredRate] // of a single connection; nil until it is known

	mu   sync.Mutex
	pool *Pool // nil until it is needed
}

// measuredRate is a rate in bytes per second, and when it was measured.
type measuredRate struct {
	rate int64
	at   time.Time
}

// Replied records the response time of a request without object data.
func (l *Link) Replied(d time.Duration) {
	for {
		was := l.fastest.Load()
		if was > 0 && was <= int64(d) || l.fastest.CompareAndSwap(was, max(int64(d), 1)) {
			return
		}
	}
}

// Measure returns a function that measures a single connection while it sends the first bytes of a
// file. n bytes were handed to the network in the time took, without that for which a rate limit
// held them back. done reports whether the rate, in bytes per second, is now known. It is known early if it is too low
// for a single connection.
func (l *Link) Measure() func(n int64, took time.Duration) (rate int64, done bool) {
	var before int64 // bytes that may only have filled buffers
	var since time.Duration
	return func(n int64, took time.Duration) (rate int64, done bool) {
		slow := time.Duration(firstBytes * int64(time.Second) / l.enough())
		sent, lasted := n-before, took-since
		switch {
		case sent < firstBytes && lasted < slow:
			return 0, false
		case before == 0 && lasted < slow:
			before, since = n, took
			return 0, false
		}
		rate = int64(float64(sent) / max(lasted, 1).Seconds())
		l.single.Store(&measuredRate{rate, time.Now()})
		return rate, true
	}
}

// enough returns the rate at which one connection is fast enough.
func (l *Link) enough() int64 {
	if l.near() {
		return fastRate
	}
	return fastRateFar
}

func (l *Link) near() bool {
	fastest := time.Duration(l.fastest.Load())
	return fastest > 0 && fastest < nearReply
}

// Long reports whether the service answers late.
func (l *Link) Long() bool { return time.Duration(l.fastest.Load()) >= longReply }

// Pool returns the pool that the files share. limit bounds its connections.
func (l *Link) Pool(limit int) *Pool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pool == nil {
		limit = max(min(limit, int(l.Memory/connectionMemory)), 1)
		l.pool = &Pool{tuner: newTuner(limit), held: l.Held, failing: l.Failing, every: l.interval, long: l.Long}
	}
	return l.pool
}

// interval returns the length of an interval of the tuner.
func (l *Link) interval() time.Duration {
	return min(max(tuneEvery, 4*time.Duration(l.fastest.Load())), time.Second)
}

// Need tells whether several connections would be faster than one.
type Need int8

const (
	Unmeasured Need = iota // the rate of one connection is not known yet
	One                    // one connection is probably as fast as several
	Several
)

// Need returns whether a file needs several connections, at most limit, and why one suffices.
func (l *Link) Need(limit int) (need Need, why string) {
	single := l.single.Load()
	if single != nil && time.Since(single.at) > measuredFor {
		single = nil
	}
	switch {
	case l.Pool(limit).oneSuffices():
		return One, "more connections did not raise the rate of an earlier file"
	case l.Limited():
		return One, "one connection reaches the rate limit"
	case single == nil:
		return Unmeasured, ""
	case single.rate < l.enough():
		return Several, ""
	case l.near():
		fastest := time.Duration(l.fastest.Load()).Round(10 * time.Microsecond)
		return One, fmt.Sprintf("the service answers within %v, so that one connection is fast enough", fastest)
	}
	return One, fmt.Sprintf("one connection is fast enough: it sends %d MiB/s", single.rate>>20)
}
