package backoff_test

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gcsup/backoff"
)

// epoch is the time at which simulations start.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// link is a model of a service behind a link. A request takes latency, and waits for its turn if
// there are more of them, or of their bytes, than the link carries per second.
type link struct {
	latency  func(time.Duration) time.Duration // at that time
	requests float64                           // per second; 0 is no limit
	falls    time.Duration                     // when requests falls to a sixth; 0 for never
	bytes    float64                           // per second; 0 is no limit
	size     func(*rand.Rand, time.Duration) int64
	refuse   func(*rand.Rand, time.Duration) bool // nil refuses none
	demand   func(time.Duration) int              // requests in flight that the client has; nil is no limit

	free time.Duration // when the link has carried all requests so far
}

// reply is the reply to a request, or the end of the wait before a retry.
type reply struct {
	at      time.Duration
	size    int64
	refused bool
	retry   bool
}

type replies []reply

func (r replies) Len() int           { return len(r) }
func (r replies) Less(i, j int) bool { return r[i].at < r[j].at }
func (r replies) Swap(i, j int)      { r[i], r[j] = r[j], r[i] }
func (r *replies) Push(x any)        { *r = append(*r, x.(reply)) }
func (r *replies) Pop() any {
	last := (*r)[len(*r)-1]
	*r = (*r)[:len(*r)-1]
	return last
}

func constant(d time.Duration) func(time.Duration) time.Duration {
	return func(time.Duration) time.Duration { return d }
}

func sized(n int64) func(*rand.Rand, time.Duration) int64 {
	return func(*rand.Rand, time.Duration) int64 { return n }
}

// second is what happened in one second of a simulation.
type second struct {
	replies, refused int
	bytes            int64
	limit            int // at its end
}

// simulate makes requests for a time, as many at a time as l permits. A refused request is
// retried after a second.
func simulate(l *backoff.Limiter, v *link, length time.Duration) []second {
	random := rand.New(rand.NewPCG(1, 2))
	seconds := make([]second, int(length/time.Second))
	var flying replies
	send := func(now time.Duration, size int64) {
		start := max(now, v.free)
		v.free = start
		if v.requests > 0 {
			each := time.Duration(1 / v.requests * float64(time.Second))
			if v.falls > 0 && now > v.falls {
				each *= 6
			}
			v.free = max(v.free, start+each)
		}
		if v.bytes > 0 {
			v.free = max(v.free, start+time.Duration(float64(size)/v.bytes*float64(time.Second)))
		}
		refused := v.refuse != nil && v.refuse(random, now)
		if refused {
			v.free = start
		}
		heap.Push(&flying, reply{max(now, v.free) + v.latency(now), size, refused, false})
	}
	fill := func(now time.Duration) {
		for v.demand == nil || l.InFlight() < v.demand(now) {
			if !l.Start(epoch.Add(now)) {
				return
			}
			send(now, v.size(random, now))
		}
	}
	fill(0)
	for now := time.Duration(0); ; {
		if len(flying) == 0 {
			now += time.Millisecond
		} else {
			r := heap.Pop(&flying).(reply)
			if now = r.at; now >= length {
				return seconds
			}
			s := &seconds[now/time.Second]
			switch {
			case r.retry:
				send(now, r.size)
			case r.refused:
				s.refused++
				l.Refused(epoch.Add(now))
				heap.Push(&flying, reply{now + time.Second, r.size, false, true})
			default:
				s.replies++
				s.bytes += r.size
				l.Ended(epoch.Add(now), r.size)
			}
		}
		if now >= length {
			return seconds
		}
		fill(now)
		seconds[now/time.Second].limit = l.Limit()
	}
}

func carried(seconds []second) (replies, bytes float64) {
	for _, s := range seconds {
		replies += float64(s.replies) / float64(len(seconds))
		bytes += float64(s.bytes) / float64(len(seconds))
	}
	return replies, bytes
}

// TestLimiterFindsLimit checks that the limiter uses a link after ten seconds, and keeps the
// number of requests near the one that the link needs.
func TestLimiterFindsLimit(t *testing.T) {
	for _, latency := range []time.Duration{10 * time.Millisecond, 50 * time.Millisecond, 150 * time.Millisecond, 500 * time.Millisecond} {
		for _, requests := range []float64{300, 1800} {
			l := &backoff.Limiter{}
			seconds := simulate(l, &link{latency: constant(latency), requests: requests, size: sized(16 << 10)}, 90*time.Second)
			first, _ := carried(seconds[10:20])
			later, _ := carried(seconds[60:])
			needed := requests * latency.Seconds()
			highest := 0
			for _, s := range seconds[60:] {
				highest = max(highest, s.limit)
			}
			t.Logf("%v, %v per second: %.0f in seconds 10 to 20, %.0f after a minute; limit %d, highest %d, needed %.0f", latency, requests, first, later, l.Limit(), highest, needed)
			if first < 0.9*requests || later < 0.93*requests {
				t.Errorf("%v, %v per second: %.0f in seconds 10 to 20, %.0f after a minute", latency, requests, first, later)
			}
			if float64(highest) > 3*needed+16 {
				t.Errorf("%v, %v per second: limit %d after a minute, the link needs %.0f", latency, requests, highest, needed)
			}
		}
	}
}

func TestLimiter(t *testing.T) {
	const fast, mid = 10 * time.Millisecond, 150 * time.Millisecond
	mixed := func(r *rand.Rand, _ time.Duration) int64 { return 1 << (10 + r.IntN(13)) }
	slow := 0
	tests := []struct {
		name    string
		limit   [2]int // First and Max
		link    link
		length  int        // seconds
		span    [2]int     // seconds that are checked
		limits  [2]int     // bounds of the limit in them
		replies [2]float64 // bounds of the replies per second; 0, 0 for any
		bytes   [2]float64
	}{
		{name: "no limit of the link", link: link{latency: constant(mid), size: sized(1)},
			length: 30, span: [2]int{10, 30}, limits: [2]int{600, 1024}},
		{name: "highest limit", limit: [2]int{2, 7}, link: link{latency: constant(fast), size: sized(1)},
			length: 30, span: [2]int{10, 30}, limits: [2]int{4, 7}, replies: [2]float64{600, 700}},
		{name: "first above the highest", limit: [2]int{20, 7}, link: link{latency: constant(fast), size: sized(1)},
			length: 30, span: [2]int{0, 30}, limits: [2]int{4, 7}},
		{name: "one at a time", limit: [2]int{0, 1}, link: link{latency: constant(fast), size: sized(1)},
			length: 10, span: [2]int{1, 10}, limits: [2]int{1, 1}, replies: [2]float64{99, 101}},
		// 100 MB/s: the mean size is 670 kB, and about 150 requests per second fit.
		{name: "mixed sizes", link: link{latency: constant(mid), bytes: 100e6, size: mixed},
			length: 180, span: [2]int{20, 180}, limits: [2]int{14, 220}, bytes: [2]float64{90e6, 101e6}},
		// The same link is limited by requests at first, and then by bytes.
		{name: "larger files follow", link: link{latency: constant(mid), requests: 1000, bytes: 100e6,
			size: func(_ *rand.Rand, now time.Duration) int64 {
				if now < time.Minute {
					return 1 << 10
				}
				return 1 << 20
			}}, length: 180, span: [2]int{70, 180}, limits: [2]int{10, 400}, bytes: [2]float64{90e6, 101e6}},
		{name: "smaller files follow", link: link{latency: constant(mid), requests: 1000, bytes: 100e6,
			size: func(_ *rand.Rand, now time.Duration) int64 {
				if now < time.Minute {
					return 1 << 20
				}
				return 1 << 10
			}}, length: 180, span: [2]int{90, 180}, limits: [2]int{100, 600}, replies: [2]float64{900, 1001}},
		{name: "throughput falls", link: link{latency: constant(mid), requests: 1200, falls: time.Minute, size: sized(1)},
			length: 240, span: [2]int{150, 240}, limits: [2]int{20, 110}, replies: [2]float64{180, 201}},
		{name: "the client has few requests", link: link{latency: constant(fast), size: sized(1), demand: func(time.Duration) int { return 5 }},
			length: 60, span: [2]int{0, 60}, limits: [2]int{32, 32}},
		{name: "no traffic for a minute", link: link{latency: constant(mid), requests: 1000, size: sized(1), demand: func(now time.Duration) int {
			if now > 30*time.Second && now < 90*time.Second {
				return 0
			}
			return 10_000
		}}, length: 180, span: [2]int{95, 180}, limits: [2]int{100, 600}, replies: [2]float64{900, 1001}},
		{name: "bursts of requests", link: link{latency: constant(fast), requests: 500, size: sized(1), demand: func(now time.Duration) int {
			if now%time.Second < 100*time.Millisecond {
				return 10_000
			}
			return 0
		}}, length: 60, span: [2]int{0, 60}, limits: [2]int{1, 128}},
		{name: "one in a hundred is refused", link: link{latency: constant(mid), requests: 1000, size: sized(1),
			refuse: func(r *rand.Rand, _ time.Duration) bool { return r.IntN(100) == 0 }},
			length: 120, span: [2]int{20, 120}, limits: [2]int{80, 600}, replies: [2]float64{900, 1001}},
		{name: "one in ten is refused", link: link{latency: constant(mid), requests: 1000, size: sized(1),
			refuse: func(r *rand.Rand, _ time.Duration) bool { return r.IntN(10) == 0 }},
			length: 120, span: [2]int{20, 120}, limits: [2]int{32, 64}, replies: [2]float64{100, 300}},
		{name: "half are refused", link: link{latency: constant(mid), requests: 1000, size: sized(1),
			refuse: func(r *rand.Rand, _ time.Duration) bool { return r.IntN(2) == 0 }},
			length: 120, span: [2]int{20, 120}, limits: [2]int{32, 64}, replies: [2]float64{20, 50}},
		{name: "one request hangs", link: link{requests: 1000, size: sized(1), latency: func(time.Duration) time.Duration {
			if slow++; slow == 10 {
				return time.Hour
			}
			return 100 * time.Millisecond
		}}, length: 60, span: [2]int{10, 60}, limits: [2]int{1, 1024}, replies: [2]float64{900, 1001}},
		{name: "all are refused", link: link{latency: constant(fast), size: sized(1), refuse: func(*rand.Rand, time.Duration) bool { return true }},
			length: 300, span: [2]int{250, 300}, limits: [2]int{1, 1}, replies: [2]float64{0, 0.1}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			seconds := simulate(&backoff.Limiter{First: test.limit[0], Max: test.limit[1]}, &test.link, time.Duration(test.length)*time.Second)[test.span[0]:test.span[1]]
			replies, bytes := carried(seconds)
			lowest, highest := seconds[0].limit, seconds[0].limit
			for _, s := range seconds {
				if s.limit > 0 {
					lowest, highest = min(lowest, s.limit), max(highest, s.limit)
				}
			}
			t.Logf("limits %d to %d, %.0f replies and %.0f bytes per second", lowest, highest, replies, bytes)
			if lowest < test.limits[0] || highest > test.limits[1] {
				t.Errorf("limits from %d to %d, want %d to %d", lowest, highest, test.limits[0], test.limits[1])
			}
			if want := test.replies; want[1] > 0 && (replies < want[0] || replies > want[1]) {
				t.Errorf("%.0f replies per second, want %.0f to %.0f", replies, want[0], want[1])
			}
			if want := test.bytes; want[1] > 0 && (bytes < want[0] || bytes > want[1]) {
				t.Errorf("%.0f bytes per second, want %.0f to %.0f", bytes, want[0], want[1])
			}
		})
	}
}

// TestLimiterRecovers checks that the limit grows again after an outage in which the service
// accepted a part of the requests, even if the limit ends between 1 and 2.
func TestLimiterRecovers(t *testing.T) {
	for one := 1; one <= 10; one++ { // one of so many is accepted, or none
		l, n, outage := &backoff.Limiter{}, 0, true
		seconds := simulate(l, &link{latency: constant(100 * time.Millisecond), requests: 1000, size: sized(1),
			refuse: func(_ *rand.Rand, now time.Duration) bool {
				n++
				outage = outage && l.Limit() > 1 && now < time.Minute
				return outage && (one == 1 || n%one != 0)
			}}, 3*time.Minute)
		if replies, _ := carried(seconds[150:]); replies < 900 {
			t.Errorf("1 of %d accepted: limit %d and %.0f replies per second after the outage, want at least 900", one, l.Limit(), replies)
		}
	}
}

// TestLimiterFewRequests checks that the limiter finds how many requests a slow link needs if these are few, and end
// together, also after an outage.
func TestLimiterFewRequests(t *testing.T) {
	for _, first := range []int{1, 4} {
		for _, needed := range []int{3, 5, 6, 10, 12} {
			for latency := 200 * time.Millisecond; latency <= 600*time.Millisecond; latency += 20 * time.Millisecond {
				requests := float64(needed) / latency.Seconds()
				seconds := simulate(&backoff.Limiter{First: first, Max: 60}, &link{latency: constant(latency), requests: requests, size: sized(1),
					refuse: func(_ *rand.Rand, now time.Duration) bool { return now > 100*time.Second && now < 140*time.Second }}, 4*time.Minute)
				for _, from := range []int{40, 180} {
					if replies, _ := carried(seconds[from : from+60]); replies < 0.9*requests {
						t.Errorf("First %d, %v, %d requests needed: %.1f replies per second from %d s, want at least %.1f", first, latency, needed, replies, from, 0.9*requests)
					}
				}
			}
		}
	}
}

// TestLimiterAfterRefusals checks that the limiter soon finds how many requests a slow link needs, after all requests of
// a second were refused. The first replies at each limit are to requests of the limit before: if they counted, the
// next limit would seem to be no better.
func TestLimiterAfterRefusals(t *testing.T) {
	for _, needed := range []int{8, 10, 12, 15, 20} {
		for latency := 300 * time.Millisecond; latency <= 600*time.Millisecond; latency += 10 * time.Millisecond {
			requests := float64(needed) / latency.Seconds()
			seconds := simulate(&backoff.Limiter{First: 2, Max: 60}, &link{latency: constant(latency), requests: requests, size: sized(1),
				refuse: func(_ *rand.Rand, now time.Duration) bool { return now > 60*time.Second && now < 61*time.Second }}, 2*time.Minute)
			if replies, _ := carried(seconds[80:]); replies < 0.9*requests {
				t.Errorf("%v, %d requests needed: %.1f replies per second from 80 s, want at least %.1f", latency, needed, replies, 0.9*requests)
			}
		}
	}
}

// TestLimiterNoticesChange checks that the limit follows a longer latency soon, even if it had not
// changed for a while.
func TestLimiterNoticesChange(t *testing.T) {
	for change := 60 * time.Second; change < 90*time.Second; change += 3 * time.Second {
		seconds := simulate(&backoff.Limiter{}, &link{requests: 500, size: sized(1), latency: func(now time.Duration) time.Duration {
			if now < change {
				return 20 * time.Millisecond
			}
			return 400 * time.Millisecond
		}}, change+25*time.Second)
		if replies, _ := carried(seconds[change/time.Second+20:]); replies < 400 {
			t.Errorf("20 s after a change at %v: %.0f replies per second, want at least 400", change, replies)
		}
	}
}

// TestLimiterStreams checks a limiter for large files, of which hardly any ends.
func TestLimiterStreams(t *testing.T) {
	for _, test := range []struct {
		name            string
		size, one, all  float64 // bytes of a request, of a request per second, and of all per second
		lowest, highest int     // bounds of the limit at the end
		most            int     // bound of the limit at any time
	}{
		{"each is slow", 500e6, 10e6, 1e12, 42, 64, 64},
		{"ten fill the link", 500e6, 10e6, 100e6, 6, 24, 32},
		{"one fills the link", 500e6, 100e6, 100e6, 1, 6, 8},
		// The rate of replies is measured only in some windows.
		{"eight end in a window", 40e6, 100e6, 100e6, 1, 6, 8},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := &backoff.Limiter{First: 4, Max: 64}
			now, total, left := epoch, 0.0, 0.0
			const seconds = 300
			most := 0
			for range 10 * seconds {
				for l.Start(now) {
				}
				now = now.Add(100 * time.Millisecond)
				used := min(test.one*float64(l.InFlight()), test.all) / 10
				l.Progress(now, int64(used))
				total += used
				for left += used; left > test.size; left -= test.size {
					l.Ended(now, 0)
				}
				most = max(most, l.Limit())
			}
			if got := l.Limit(); got < test.lowest || got > test.highest || most > test.most {
				t.Errorf("limit %d, at most %d, want %d to %d, at most %d", got, most, test.lowest, test.highest, test.most)
			}
			if got, want := total/seconds, min(test.all, 64*test.one); got < 0.85*want {
				t.Errorf("%.0f bytes per second, want %.0f", got, want)
			}
		})
	}
}

// TestLimiterClock checks that a clock that goes back, jumps or stands still does no harm.
func TestLimiterClock(t *testing.T) {
	for name, at := range map[string]func(i int) time.Time{
		"back":        func(i int) time.Time { return epoch.Add(-time.Duration(i) * time.Second) },
		"stands":      func(int) time.Time { return epoch },
		"zero":        func(int) time.Time { return time.Time{} },
		"there, back": func(i int) time.Time { return epoch.Add(time.Duration(i%2) * 1e6 * time.Hour) },
		"far":         func(i int) time.Time { return epoch.Add(time.Duration(i) * 1e6 * time.Hour) },
	} {
		l := &backoff.Limiter{First: 8, Max: 100}
		for i := range 3_000 {
			for l.Start(at(i)) {
			}
			switch i % 7 {
			case 5:
				l.Progress(at(i), -5)
			default:
				l.Ended(at(i), 10)
			}
			if limit := l.Limit(); limit < 1 || limit > 100 {
				t.Fatalf("%s: limit %d", name, limit)
			}
		}
		if name == "back" || name == "stands" {
			if got := l.Limit(); got != 8 {
				t.Errorf("%s: limit %d without time, want 8", name, got)
			}
		}
	}
}

// TestLimiterEndedTwice checks that a request that ends more than once does not make the count
// negative.
func TestLimiterEndedTwice(t *testing.T) {
	var l backoff.Limiter
	l.Ended(epoch, 0)
	l.Ended(epoch, 0)
	if l.InFlight() != 0 || !l.Start(epoch) || l.InFlight() != 1 {
		t.Errorf("%d in flight, want 1", l.InFlight())
	}
}

// TestLimiterAcquire checks that callers of Acquire get their turns in order, as soon as the limit
// permits, and that those whose context ends take no turn.
func TestLimiterAcquire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &backoff.Limiter{First: 2, Max: 4}
		var got []int
		ctx, cancel := context.WithCancelCause(t.Context())
		for i := range 5 {
			own := t.Context()
			if i == 3 {
				own = ctx
			}
			go func() {
				err := l.Acquire(own)
				if err != nil {
					i = -i
				}
				got = append(got, i) // one goroutine at a time: each wakes only one
				if i == -3 && err != context.Cause(ctx) {
					t.Errorf("error %v, want the cause of the context", err)
				}
			}()
			synctest.Wait()
		}
		want := func(when string, inFlight int, order ...int) {
			t.Helper()
			synctest.Wait()
			if l.InFlight() != inFlight || !slices.Equal(got, order) {
				t.Errorf("%s: %d in flight, turns %v, want %d and %v", when, l.InFlight(), got, inFlight, order)
			}
		}
		want("at first", 2, 0, 1)
		if l.Start(time.Now()) {
			t.Error("Start succeeded at the limit")
		}
		cancel(errors.New("canceled"))
		want("canceled", 2, 0, 1, -3)
		l.Ended(time.Now(), 1)
		want("one ended", 2, 0, 1, -3, 2)
		l.Ended(time.Now(), 1)
		want("another ended", 2, 0, 1, -3, 2, 4)
		l.Ended(time.Now(), 1)
		l.Ended(time.Now(), 1)
		want("all ended", 0, 0, 1, -3, 2, 4)
		if err := l.Acquire(ctx); err != context.Cause(ctx) || l.InFlight() != 0 {
			t.Errorf("context that is done: error %v, %d in flight", err, l.InFlight())
		}
	})
}

// TestLimiterAcquireGrows checks that all callers that wait get a turn when the limit grows.
func TestLimiterAcquireGrows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, start := &backoff.Limiter{}, time.Now()
		var most atomic.Int64
		var group sync.WaitGroup
		for range 3000 {
			group.Go(func() {
				if err := l.Acquire(t.Context()); err != nil {
					t.Error(err)
				}
				most.Store(max(most.Load(), int64(l.InFlight())))
				time.Sleep(100 * time.Millisecond)
				l.Ended(time.Now(), 1000)
			})
		}
		group.Wait()
		// 32, 64, 128, … in each round trip.
		if took := time.Since(start); took > 2*time.Second || most.Load() < 500 {
			t.Errorf("3,000 requests of 100 ms took %v, at most %d at a time", took, most.Load())
		}
	})
}

// TestLimiterAcquireCanceled checks that turns that are given to callers whose contexts end at the
// same time are not lost.
func TestLimiterAcquireCanceled(t *testing.T) {
	l := &backoff.Limiter{First: 3, Max: 3}
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(i)))
			for range 2000 {
				ctx, cancel := context.WithCancel(t.Context())
				if random.IntN(2) == 0 {
					go cancel()
				}
				if l.Acquire(ctx) == nil {
					l.Ended(time.Now(), 0)
				}
				cancel()
			}
		})
	}
	group.Wait()
	if n := l.InFlight(); n != 0 {
		t.Errorf("%d in flight at the end", n)
	}
}

// This example finds how many requests a service needs that replies after 100 ms, and serves
// 2,000 requests per second.
func ExampleLimiter() {
	var limiter backoff.Limiter
	now := time.Now()
	fmt.Println("at the start:", limiter.Limit())
	for range 200 { // round trips
		started := 0
		for limiter.Start(now) {
			started++
		}
		now = now.Add(max(100*time.Millisecond, time.Duration(started)*time.Second/2000))
		for range started {
			limiter.Ended(now, 1000)
		}
	}
	limit := limiter.Limit()
	fmt.Println("later near 200:", limit > 120 && limit < 400)
	// Output:
	// at the start: 32
	// later near 200: true
}

func BenchmarkLimiter(b *testing.B) {
	l, now := &backoff.Limiter{}, epoch
	b.ReportAllocs()
	for b.Loop() {
		l.Start(now)
		now = now.Add(time.Millisecond)
		l.Ended(now, 1000)
	}
}
