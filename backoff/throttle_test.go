package backoff_test

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gcsup/backoff"
)

func TestThrottleBucket(t *testing.T) {
	// take asks until the bucket refuses, at most 100 times.
	take := func(throttle *backoff.Throttle) int {
		n := 0
		for n < 100 && throttle.Allow() {
			n++
		}
		return n
	}
	type step struct {
		do   string
		want int // tokens there are then
	}
	tests := []struct {
		name  string
		steps []step
	}{
		{"starts with four", []step{{"", 4}}},
		{"one per 30 s", []step{{"", 4}, {"29.999s", 0}, {"1ms", 1}, {"45s", 1}, {"15s", 1}, {"90s", 3}}},
		{"never more than four", []step{{"", 4}, {"1h", 4}}},
		{"retry gives two", []step{{"", 4}, {"retry", 2}, {"", 0}}},
		{"ten first tries give one", []step{{"", 4}, {"first", 0}, {"9 first", 1}}},
		{"success fills no higher than four", []step{{"retry", 4}, {"", 0}}},
		{"much success fills no higher than four", []step{{"100 first", 4}, {"retry", 2}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var throttle backoff.Throttle
				for i, step := range test.steps {
					switch step.do {
					case "":
					case "retry":
						throttle.Succeeded(true)
					case "first":
						throttle.Succeeded(false)
					case "9 first":
						for range 9 {
							throttle.Succeeded(false)
						}
					case "100 first":
						for range 100 {
							throttle.Succeeded(false)
						}
					default:
						d, err := time.ParseDuration(step.do)
						if err != nil {
							t.Fatal(err)
						}
						time.Sleep(d)
					}
					if got := take(&throttle); got != step.want {
						t.Errorf("step %d (%q): %d tokens, want %d", i, step.do, got, step.want)
					}
				}
			})
		})
	}
}

func TestThrottleNil(t *testing.T) {
	var throttle *backoff.Throttle
	for range 10 {
		if !throttle.Allow() {
			t.Fatal("a nil Throttle refused")
		}
	}
	throttle.Succeeded(true)
}

// outage runs uploads that share a Throttle against a service that answers no
// request before up, and returns the requests made in the first 32 s, the
// uploads that succeeded, and the time of each request.
func outage(t *testing.T, uploads int, throttle *backoff.Throttle, random func() float64, up time.Duration) (in32s, succeeded int, times []time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var mu sync.Mutex
		request := func() bool {
			mu.Lock()
			defer mu.Unlock()
			times = append(times, time.Since(start))
			return time.Since(start) >= up
		}
		var ok atomic.Int64
		var wg sync.WaitGroup
		for range uploads {
			wg.Go(func() {
				var budget backoff.Budget
				for !request() {
					budget.Failed()
					for {
						wait, more := budget.Next(backoff.Policy{}, random(), 0, time.Since(start))
						if !more {
							return
						}
						time.Sleep(wait)
						if throttle.Allow() {
							break
						}
						budget.Throttled()
					}
				}
				throttle.Succeeded(budget.Failures() > 0)
				ok.Add(1)
			})
		}
		wg.Wait()
		succeeded = int(ok.Load())
	})
	for _, at := range times {
		if at < 32*time.Second {
			in32s++
		}
	}
	return in32s, succeeded, times
}

// TestThrottleOutage is the point of the bucket: many uploads that fail make
// hardly more requests than they would make if they never retried, and a lone
// one is not held up.
func TestThrottleOutage(t *testing.T) {
	const never = 1000 * time.Hour
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	var mu sync.Mutex
	r := rand.New(rand.NewPCG(seed, 0))
	random := func() float64 {
		mu.Lock()
		defer mu.Unlock()
		return r.Float64()
	}

	// Without jitter the five retries come after 1, 3, 7, 15 and 31 s; the
	// longest jitter makes it 2, 5, 10, 19 and 36 s.
	t.Run("lone upload", func(t *testing.T) {
		for _, random := range []float64{0, 0.5, almostOne} {
			same := func() float64 { return random }
			if _, _, times := outage(t, 1, new(backoff.Throttle), same, never); len(times) != 6 {
				t.Errorf("random %v: %d requests at %v, want 6", random, len(times), times)
			} else if random == 0 && times[5] != 31*time.Second {
				t.Errorf("last retry at %v, want 31s", times[5])
			}
		}
	})
	t.Run("32 uploads", func(t *testing.T) {
		without, _, _ := outage(t, 32, nil, random, never)
		with, _, all := outage(t, 32, new(backoff.Throttle), random, never)
		t.Logf("requests in 32 s: %d without the bucket, %d with it (%.2f per first request), %d until the last gave up",
			without, with, float64(with)/32, len(all))
		if without < 32*5 || without > 32*6 {
			t.Errorf("without the bucket: %d requests in 32 s, want %d to %d", without, 32*5, 32*6)
		}
		if with < 36 || with > 37 {
			t.Errorf("with the bucket: %d requests in 32 s, want 36 or 37", with)
		}
	})
	// A bucket that is empty when the service comes back must not keep the
	// uploads from coming back too.
	t.Run("after the outage", func(t *testing.T) {
		for _, up := range []time.Duration{time.Second, 10 * time.Second, 20 * time.Second, 40 * time.Second, 55 * time.Second} {
			_, succeeded, times := outage(t, 32, new(backoff.Throttle), random, up)
			t.Logf("up after %v: %d of 32 succeeded by %v, %d requests", up, succeeded, times[len(times)-1], len(times))
			if succeeded != 32 {
				t.Errorf("up after %v: %d of 32 uploads succeeded", up, succeeded)
			}
		}
	})
}

func BenchmarkThrottle(b *testing.B) {
	var throttle backoff.Throttle
	b.ReportAllocs()
	for b.Loop() {
		throttle.Allow()
		throttle.Succeeded(true)
	}
}
