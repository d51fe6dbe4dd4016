package backoff_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gcsup/backoff"
)

// accept records that requests were accepted, evenly over a time, and returns its end.
func accept(r *backoff.Rate, now time.Time, perSecond float64, span time.Duration) time.Time {
	n := int(perSecond * span.Seconds())
	for i := range n {
		r.Accepted(now.Add(span * time.Duration(i+1) / time.Duration(n)))
	}
	return now.Add(span)
}

func TestRateStart(t *testing.T) {
	for _, test := range []struct {
		name     string
		accepted float64 // per second of this machine
		span     time.Duration
		machines int
		want     float64
	}{
		{"nothing was accepted", 0, 0, 1, 100},
		{"slow", 40, 5 * time.Second, 1, 100},
		{"between", 400, 5 * time.Second, 1, 400},
		{"fast", 4000, 5 * time.Second, 1, 1000},
		{"a short time", 500, 200 * time.Millisecond, 1, 500},
		{"a burst", 20_000, 10 * time.Millisecond, 1, 1000},
		{"a small burst", 2000, 10 * time.Millisecond, 1, 200},
		{"ten machines", 40, 5 * time.Second, 10, 400},
		{"a hundred machines", 40, 5 * time.Second, 100, 1000},
		{"many idle machines", 0.5, 4 * time.Second, 100, 100},
	} {
		t.Run(test.name, func(t *testing.T) {
			var r backoff.Rate
			r.Share(3, test.machines)
			now := accept(&r, epoch, test.accepted, test.span)
			if got := r.Reserve(now) + r.Reserve(now); got != 0 || r.PerSecond() != 0 {
				t.Errorf("before a 429: wait %v, rate %v, want 0", got, r.PerSecond())
			}
			if first, second := r.Refused(now), r.Refused(now); !first || second {
				t.Errorf("Refused() = %v and %v, want true for the first 429 only", first, second)
			}
			nearTo(t, &r, 0.06)("after the first 429", test.want)
			var last time.Duration
			for range 1001 {
				last = r.Reserve(now)
			}
			share := float64(test.machines) / r.PerSecond()
			if got := last.Seconds() / 1000; math.Abs(got/share-1) > 0.03 {
				t.Errorf("waits %v s between two requests, want %v s", got, share)
			}
		})
	}
}

// paced makes requests as fast as r permits for a time, all of which are accepted, and returns
// its end.
func paced(r *backoff.Rate, now time.Time, span time.Duration) time.Time {
	end := now.Add(span)
	for now.Before(end) {
		now = now.Add(r.Reserve(now))
		r.Accepted(now)
	}
	return now
}

// nearTo returns a function that checks a rate, up to a share of it.
func nearTo(t *testing.T, r *backoff.Rate, share float64) func(when string, want float64) {
	return func(when string, want float64) {
		t.Helper()
		if got := r.PerSecond(); math.Abs(got/want-1) > share {
			t.Errorf("%s: %.1f per second, want %.1f", when, got, want)
		}
	}
}

func TestRateGrows(t *testing.T) {
	var r backoff.Rate
	now := accept(&r, epoch, 400, 2*time.Second)
	r.Refused(now)
	near := nearTo(t, &r, 0.01)
	now = paced(&r, now, 30*time.Second)
	near("after half a minute", 700)
	now = paced(&r, now, 30*time.Second)
	near("after a minute", 1000)
	now = paced(&r, now, 5*time.Minute)
	near("5 minutes later", 1000*math.Exp2(0.25))
	r.Set(4000)

	now = now.Add(48 * time.Hour)
	near("after two days without traffic", 4000)
	if first, second := r.Reserve(now), r.Reserve(now); first != 0 || second > time.Millisecond {
		t.Errorf("waits %v and %v after a pause, want no long burst and no wait", first, second)
	}
	r.Refused(now)
	near("a 429 without traffic", 3600)
	now = paced(&r, now.Add(2*time.Second), time.Minute)
	near("a minute later", 4000)

	r.Refused(now)
	near("a 429 at full traffic", 3600)
	now = now.Add(499 * time.Millisecond)
	for range 1000 {
		r.Refused(now)
	}
	now = now.Add(500 * time.Millisecond)
	r.Refused(now)
	near("a thousand 429s in the same second", 3600)
	for range 500 {
		now = now.Add(2 * time.Millisecond)
		r.Accepted(now)
		r.Refused(now)
	}
	near("half of the requests are refused for a second", 3600*0.5)
	for range 60 {
		now = now.Add(2 * time.Second)
		r.Refused(now)
	}
	near("nothing is accepted for two minutes", 10)
	now = now.Add(2 * time.Second)
	for range 61 {
		r.Accepted(now)
	}
	if got := r.PerSecond(); got < 11 || got > 20 {
		t.Errorf("after 61 accepted requests at the lowest rate: %v per second", got)
	}
	r.Set(0)
	if waits := r.Reserve(now) + r.Reserve(now); waits != 0 || r.PerSecond() != 0 {
		t.Error("Set(0) does not end the pacing")
	}
	if !r.Refused(now) {
		t.Error("the first 429 after Set(0) does not count as the first")
	}
}

// TestRateRecovers checks that some seconds in which all requests are refused do not determine the
// rate for long.
func TestRateRecovers(t *testing.T) {
	for _, test := range []struct {
		refusing time.Duration
		after    time.Duration
		want     float64
	}{
		{time.Second, time.Minute, 950},
		{10 * time.Second, 5 * time.Minute, 300},
		{10 * time.Second, 15 * time.Minute, 900},
		{15 * time.Second, 15 * time.Minute, 700},
		{10 * time.Minute, 15 * time.Minute, 390},
	} {
		var r backoff.Rate
		r.Set(1000)
		now := paced(&r, epoch, 10*time.Second)
		for end := now.Add(test.refusing); now.Before(end); {
			now = now.Add(r.Reserve(now))
			r.Refused(now)
		}
		lowest := r.PerSecond()
		paced(&r, now, test.after)
		if got := r.PerSecond(); got < test.want || got > 2*test.want+1000 {
			t.Errorf("refused for %v, which leaves %.0f per second: %.0f after %v, want at least %v", test.refusing, lowest, got, test.after, test.want)
		}
	}
}

// TestRateBacklog checks that the replies to requests that had reserved their time before a 429 do
// not lower the rate again.
func TestRateBacklog(t *testing.T) {
	var r backoff.Rate
	r.Set(100)
	r.Accepted(epoch)
	now := epoch.Add(2 * time.Second)
	for range 500 { // for 3 s after the 429
		r.Reserve(now)
	}
	r.Refused(now)
	want := r.PerSecond()
	for range 300 {
		now = now.Add(10 * time.Millisecond)
		r.Refused(now)
	}
	if got := r.PerSecond(); got != want || got > 90 {
		t.Errorf("%v per second after the replies to old requests, %v before, want the same", got, want)
	}
	now = now.Add(3 * time.Second)
	if r.Refused(now); r.PerSecond() >= want {
		t.Errorf("%v per second after another 429, want less than %v", r.PerSecond(), want)
	}
}

func TestRateSet(t *testing.T) {
	for _, test := range []struct{ set, want float64 }{
		{50, 50}, {20_000, 20_000}, {0.1, 1}, {0, 0}, {-1, 0}, {math.NaN(), 0},
	} {
		var r backoff.Rate
		r.Set(test.set)
		if got := r.PerSecond(); got != test.want {
			t.Errorf("Set(%v): %v per second, want %v", test.set, got, test.want)
		}
	}
	var r backoff.Rate
	r.Set(50)
	near := nearTo(t, &r, 0.01)
	now := paced(&r, epoch, 5*time.Minute)
	near("5 minutes after Set(50)", 100)
	r.Set(2000)
	paced(&r, now, 5*time.Minute)
	near("5 minutes after Set(2000)", 2000*math.Exp2(0.25))
}

// TestRateLimit checks that a rate with a limit is throttled from the start, does not grow above the limit,
// and grows back to it after a 429.
func TestRateLimit(t *testing.T) {
	for _, limit := range []float64{20, 500} {
		var r backoff.Rate
		check := nearTo(t, &r, 0.001)
		r.Limit(limit)
		check("at the start", limit)
		now := paced(&r, epoch, 10*time.Minute)
		check("after ten minutes", limit)
		if r.Refused(now) {
			t.Errorf("limit %v: a 429 counts as the first although requests were paced", limit)
		}
		check("after a 429", 0.9*limit)
		now = paced(&r, now, 2*time.Minute)
		check("two minutes later", limit)
		for range 10 {
			now = now.Add(2 * time.Second)
			r.Refused(now)
		}
		if got := r.PerSecond(); got > limit/2 {
			t.Errorf("limit %v: %v per second although ten requests in a row were refused", limit, got)
		}
		now = paced(&r, now, time.Hour)
		check("an hour after ten 429s", limit)
		r.Set(limit * 2)
		check("after Set above it", limit)
		r.Set(0)
		check("after Set(0)", limit)
		r.Limit(0)
		if paced(&r, now, 5*time.Minute); r.PerSecond() <= limit {
			t.Errorf("limit %v: %v per second five minutes after it was removed, want more", limit, r.PerSecond())
		}
	}
	var r backoff.Rate
	for _, none := range []float64{0, -1, math.NaN()} {
		if r.Limit(none); r.PerSecond() != 0 {
			t.Errorf("Limit(%v) paces requests", none)
		}
	}
	r.Set(300)
	if r.Limit(400); r.PerSecond() != 300 {
		t.Errorf("%v per second, want the 300 of before, which are below the limit", r.PerSecond())
	}
	if r.Limit(200); r.PerSecond() != 200 {
		t.Errorf("%v per second, want the limit of 200", r.PerSecond())
	}
}

// TestRateWait checks that requests wait in turn, that those whose context ends delay no other, and that
// nothing waits without a 429.
func TestRateWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r backoff.Rate
		if waited, err := r.Wait(t.Context(), false); waited != 0 || err != nil {
			t.Errorf("waited %v without a 429: %v", waited, err)
		}
		r.Set(10)
		start, cause := time.Now(), errors.New("stopped")
		stopped, stop := context.WithCancelCause(t.Context())
		var mu sync.Mutex
		var starts []time.Duration
		var requests sync.WaitGroup
		for i := range 200 {
			ctx := t.Context()
			if i%2 == 0 {
				ctx = stopped
			}
			requests.Go(func() {
				began := time.Now()
				waited, err := r.Wait(ctx, false)
				if took := time.Since(began); waited != took {
					t.Errorf("Wait() = %v after %v", waited, took)
				}
				if err != nil {
					if ctx == t.Context() || err != cause {
						t.Errorf("Wait: %v", err)
					}
					return
				}
				mu.Lock()
				defer mu.Unlock()
				starts = append(starts, time.Since(start))
			})
		}
		time.Sleep(2 * time.Second)
		stop(cause)
		requests.Wait()
		if n := len(starts); n < 105 || n > 125 {
			t.Errorf("%d requests, want the 100 that were not stopped, and some of the others", n)
		}
		if end, want := starts[len(starts)-1], time.Duration(len(starts)-1)*100*time.Millisecond; end < want-50*time.Millisecond || end > want+50*time.Millisecond {
			t.Errorf("%d requests in %v, want about %v: more than a minute at a low rate is no reason to exceed it", len(starts), end, want)
		}
	})
}

// TestRateWaitRetry checks that a retry waits for the retries before it, and at most for one other request.
func TestRateWaitRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r backoff.Rate
		r.Set(10)
		var requests sync.WaitGroup
		for range 100 {
			requests.Go(func() { _, _ = r.Wait(t.Context(), false) })
		}
		time.Sleep(time.Second)
		for i := range 5 {
			waited, err := r.Wait(t.Context(), true)
			if waited > 300*time.Millisecond || err != nil {
				t.Errorf("retry %d waited %v: %v", i, waited, err)
			}
		}
		var retries sync.WaitGroup
		start := time.Now()
		for range 20 {
			retries.Go(func() { _, _ = r.Wait(t.Context(), true) })
		}
		retries.Wait()
		if took := time.Since(start); took > 2300*time.Millisecond {
			t.Errorf("20 retries waited %v, want about 2s", took)
		}
		start = time.Now()
		requests.Wait()
		if took := time.Since(start); took < 5*time.Second {
			t.Errorf("the other requests waited %v more, want more than 5s", took)
		}
	})
}

// TestRateBurst checks that many requests that are ready at once are spread over time, and that
// requests that are a little late do not lower the rate.
func TestRateBurst(t *testing.T) {
	var r backoff.Rate
	r.Set(100)
	for i := range 300 {
		if got, want := r.Reserve(epoch), time.Duration(max(i-2, 0))*10*time.Millisecond; got > want+20*time.Millisecond || got < want-20*time.Millisecond {
			t.Fatalf("request %d waits %v, want about %v", i, got, want)
		}
	}
	now, n := epoch.Add(time.Hour), 0
	for end := now.Add(10 * time.Second); now.Before(end); n++ {
		now = now.Add(r.Reserve(now) + 5*time.Millisecond) // a slow timer
	}
	if n < 990 || n > 1005 {
		t.Errorf("%d requests in 10 s with slow timers, want 1000", n)
	}
}

// TestRateCancel checks that requests that are not made delay no others, and let no burst pass.
func TestRateCancel(t *testing.T) {
	var r backoff.Rate
	r.Cancel() // nothing is throttled
	r.Set(100)
	for range 1000 {
		r.Reserve(epoch)
	}
	for range 990 {
		r.Cancel()
	}
	if wait := r.Reserve(epoch); wait < 80*time.Millisecond || wait > 110*time.Millisecond {
		t.Errorf("wait %v after 10 requests, want 100ms", wait)
	}
	for range 1000 {
		r.Cancel()
	}
	var wait time.Duration
	for range 101 {
		wait = r.Reserve(epoch)
	}
	if wait < 970*time.Millisecond {
		t.Errorf("100 requests within %v after many were canceled, want 1s", wait)
	}
}

// TestRateClock checks that a clock that goes back neither holds requests nor lets them pass.
func TestRateClock(t *testing.T) {
	var r backoff.Rate
	r.Set(100)
	now := epoch
	for i := range 1000 {
		now = now.Add(r.Reserve(now))
		r.Accepted(now)
		if i%100 == 50 {
			now = now.Add(-time.Hour)
		}
		if wait := r.Reserve(now); wait > 50*time.Millisecond {
			t.Fatalf("request %d waits %v", i, wait)
		}
	}
	before := r.PerSecond()
	r.Refused(epoch.Add(-100 * time.Hour))
	if got := r.PerSecond(); got > before || got < before/2 {
		t.Errorf("%v per second after a 429 in the past, before it %v", got, before)
	}
	for _, at := range []time.Time{{}, epoch.Add(1e6 * time.Hour), {}, epoch.Add(-1e6 * time.Hour)} {
		if wait := r.Reserve(at); wait < 0 || wait > 100*time.Millisecond {
			t.Errorf("wait %v at %v", wait, at)
		}
		r.Accepted(at)
		r.Refused(at)
		if got := r.PerSecond(); !(got >= 1 && got <= 1000) {
			t.Errorf("%v per second at %v", got, at)
		}
	}
}

// TestRateOutOfOrder checks that times of several goroutines that arrive out of order count once.
func TestRateOutOfOrder(t *testing.T) {
	var r backoff.Rate
	r.Set(10)
	now := time.Now() // with a monotonic reading
	var wait time.Duration
	for i := range 100 {
		wait = r.Reserve(now.Add(-time.Duration(i%2) * 100 * time.Millisecond))
	}
	if wait < 9800*time.Millisecond {
		t.Errorf("100 requests within %v, want 9.9s", wait)
	}
}

// TestRateWithMachines simulates machines that write to one bucket as fast as their rates permit,
// and learn the outcome after 150 ms. After a minute nearly no request may be refused, and most
// of the capacity must be used.
func TestRateWithMachines(t *testing.T) {
	for _, test := range []struct {
		machines int
		capacity float64
	}{{1, 1000}, {1, 150}, {3, 1000}, {3, 700}, {100, 1000}, {100, 300}} {
		const step, latency = 5 * time.Millisecond, 30 // steps
		rates := make([]backoff.Rate, test.machines)
		due := make([]time.Duration, test.machines)
		type outcome struct {
			machine  int
			accepted bool
		}
		var flying [latency][]outcome
		credit, refused, accepted := 0.0, 0, 0
		for i := range rates {
			rates[i].Share(i, test.machines)
		}
		const minutes = 4
		for n := range int(minutes * time.Minute / step) {
			now := time.Duration(n) * step
			for _, o := range flying[n%latency] {
				if o.accepted {
					rates[o.machine].Accepted(epoch.Add(now))
				} else {
					rates[o.machine].Refused(epoch.Add(now))
				}
			}
			flying[n%latency] = flying[n%latency][:0]
			credit = min(credit+test.capacity*step.Seconds(), test.capacity/10)
			for k := range rates {
				i := (k + n) % len(rates)
				for sent := 0; due[i] <= now && sent < 20; sent++ { // 4,000 per second without a rate
					o := outcome{i, credit >= 1}
					if o.accepted {
						credit--
					}
					if now >= time.Minute && o.accepted {
						accepted++
					} else if now >= time.Minute {
						refused++
					}
					flying[n%latency] = append(flying[n%latency], o)
					due[i] = now + rates[i].Reserve(epoch.Add(now))
				}
			}
		}
		share := float64(refused) / float64(refused+accepted)
		used := float64(accepted) / (test.capacity * 60 * (minutes - 1))
		t.Logf("%d machines, %v per second: %.2f %% refused after a minute, %.3f used", test.machines, test.capacity, 100*share, used)
		if share > 0.01 || used < 0.9 {
			t.Errorf("%d machines, %v per second: %.2f %% refused after a minute, want at most 1 %%; %.3f used, want 0.9", test.machines, test.capacity, 100*share, used)
		}
	}
}

// This example paces requests after a 429. A program sleeps for the duration that Reserve
// returns.
func ExampleRate() {
	var rate backoff.Rate
	now := time.Now()
	fmt.Println("before a 429:", rate.Reserve(now))

	for range 1000 { // 500 requests per second are accepted
		now = now.Add(2 * time.Millisecond)
		rate.Accepted(now)
	}
	rate.Refused(now)
	fmt.Printf("after it: about %.0f per second\n", math.Round(rate.PerSecond()/10)*10)
	for range 4 {
		fmt.Print(rate.Reserve(now).Round(time.Millisecond), " ")
	}
	// Output:
	// before a 429: 0s
	// after it: about 500 per second
	// 0s 2ms 4ms 6ms
}

func BenchmarkRate(b *testing.B) {
	r, now := &backoff.Rate{}, epoch
	r.Set(1000)
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(r.Reserve(now))
		r.Accepted(now)
	}
}
