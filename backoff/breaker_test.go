package backoff_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gcsup/backoff"
	"gcsup/internal/testsize"
)

const never = 1000 * time.Hour

// crowd is a set of operations that share a breaker and a service, in a synctest
// bubble.
type crowd struct {
	breaker *backoff.Breaker
	policy  backoff.Policy
	budget  backoff.Budget
	up      time.Duration // when the service is up again
	takes   time.Duration // how long a request takes

	start    time.Time
	mu       sync.Mutex
	requests []time.Duration // when each request was made
	retries  int             // retries under way
	most     []int           // the most retries under way before each successful one
	ended    []time.Duration // when each operation ended
	spent    int             // operations whose budget was spent
	longest  time.Duration   // the longest time without a Pause during a wait
}

// run runs n operations until they end.
func (c *crowd) run(t *testing.T, n int) {
	t.Helper()
	c.start = time.Now()
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			err := c.operation(t.Context())
			c.mu.Lock()
			defer c.mu.Unlock()
			c.ended = append(c.ended, time.Since(c.start))
			if errors.Is(err, backoff.ErrRetriesExhausted) {
				c.spent++
			} else if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

func (c *crowd) operation(ctx context.Context) error {
	var last time.Time
	w := backoff.Waiter{Breaker: c.breaker, Policy: c.policy, Budget: c.budget, Before: func(p backoff.Pause) error {
		c.report(&last, p.Blocked)
		return nil
	}}
	defer w.Close()
	for retry := false; !c.request(retry); retry = true {
		last = time.Time{}
		if err := w.Wait(ctx, backoff.Failure{}); err != nil {
			return err
		}
		c.report(&last, true)
	}
	w.Succeeded()
	return nil
}

// report records a Pause, or the end of a wait. The policy limits a wait that
// is not held.
func (c *crowd) report(last *time.Time, held bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if held && !last.IsZero() {
		c.longest = max(c.longest, time.Since(*last))
	}
	*last = time.Now()
}

// request makes a request and reports whether it succeeded.
func (c *crowd) request(retry bool) bool {
	c.mu.Lock()
	c.requests = append(c.requests, time.Since(c.start))
	if retry {
		c.retries++
	}
	c.mu.Unlock()
	if c.takes > 0 {
		time.Sleep(c.takes)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	ok := time.Since(c.start) >= c.up
	if retry {
		if ok {
			c.most = append(c.most, c.retries)
		}
		c.retries--
	}
	return ok
}

// between returns how many requests were made from one time until another.
func (c *crowd) between(from, to time.Duration) (n int) {
	for _, at := range c.requests {
		if from <= at && at < to {
			n++
		}
	}
	return n
}

// TestBreakerInAnOutage checks the number of requests to a service that is down: at
// most 1.2 for each operation in 32 s, and then one per longest wait.
func TestBreakerInAnOutage(t *testing.T) {
	if testing.Short() {
		t.Skip("simulates many operations")
	}
	const n = 32
	for _, takes := range []time.Duration{0, 100 * time.Millisecond, 2 * time.Second} {
		for range 20 {
			synctest.Test(t, func(t *testing.T) {
				c := crowd{breaker: new(backoff.Breaker), budget: backoff.Budget{For: time.Hour}, up: never, takes: takes}
				c.run(t, n)
				if early := c.between(0, 32*time.Second); early > n*6/5 || early < n+4 {
					t.Errorf("requests of %v: %d in 32 s, want %d to %d", takes, early, n+4, n*6/5)
				}
				later := c.requests[c.between(0, 32*time.Second):]
				for i := 1; i < len(later); i++ {
					if d := later[i] - later[i-1]; d < 32*time.Second {
						t.Errorf("requests of %v: a retry after %v, %v after the previous one", takes, later[i], d)
					}
				}
				if last := later[len(later)-1]; last < time.Hour-64*time.Second-takes {
					t.Errorf("requests of %v: the last retry came after %v", takes, last)
				}
				if c.spent != n {
					t.Errorf("%d budgets were spent, want %d", c.spent, n)
				}
				if c.longest > 32*time.Second {
					t.Errorf("no Pause for %v", c.longest)
				}
			})
		}
	}
}

// TestBreakerLeavesALoneOperationAlone checks that an operation that does not share the
// breaker waits for its own backoff only, even if the breaker was open.
func TestBreakerLeavesALoneOperationAlone(t *testing.T) {
	for _, before := range []int{0, 1, 32} { // operations that failed before
		for _, breaker := range []*backoff.Breaker{nil, backoff.NoBreaker, {}, {Threshold: 1}} {
			synctest.Test(t, func(t *testing.T) {
				(&crowd{breaker: breaker, up: never}).run(t, before)
				c := crowd{breaker: breaker, policy: noJitter, up: never}
				c.run(t, 1)
				want := []time.Duration{0, time.Second, 3 * time.Second, 7 * time.Second, 15 * time.Second, 31 * time.Second}
				if !slices.Equal(c.requests, want) {
					t.Errorf("after %d operations: requests at %v, want %v", before, c.requests, want)
				}
			})
		}
	}
	for jitter := range backoff.DecorrelatedJitter + 1 {
		synctest.Test(t, func(t *testing.T) {
			c := crowd{breaker: &backoff.Breaker{Threshold: 1}, policy: backoff.Policy{Jitter: jitter}, up: never, takes: time.Minute}
			c.run(t, 1)
			if len(c.requests) != 6 {
				t.Errorf("%v: %d requests, want 6", jitter, len(c.requests))
			}
		})
	}
}

// TestBreakerCloses checks that all operations succeed soon after the service is up
// again, and that the number of concurrent retries doubles.
func TestBreakerCloses(t *testing.T) {
	const n, takes = 32, 100 * time.Millisecond
	for _, up := range []time.Duration{200 * time.Millisecond, 5 * time.Second, 20 * time.Second, 40 * time.Second, 10 * time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			c := crowd{breaker: new(backoff.Breaker), budget: backoff.Budget{For: time.Hour}, up: up, takes: takes}
			c.run(t, n)
			last := c.ended[n-1]
			t.Logf("up after %v: all succeeded %v later, %d requests, retries under way %v", up, last-up, len(c.requests), c.most)
			if c.spent > 0 || last > up+32*time.Second+time.Second {
				t.Errorf("up after %v: %d budgets were spent, the last operation ended after %v", up, c.spent, last)
			}
			if up < time.Second {
				return // the service is up before the first retry: the jitter spreads the retries
			}
			for i, most := range c.most {
				// i retries succeeded before, and each raised the limit by one.
				if i < n/2 && most > i+1 {
					t.Errorf("up after %v: %d retries under way when %d had succeeded", up, most, i)
				}
			}
			if slices.Max(c.most) < n/4 {
				t.Errorf("up after %v: never more than %d retries under way", up, slices.Max(c.most))
			}
		})
	}
}

// throughput returns how many operations parallel workers complete if one
// request in ten fails, in a time that is long enough for a stable result.
func throughput(t *testing.T, breaker *backoff.Breaker, workers int, takes time.Duration) (done int) {
	enough := time.Duration(testsize.Full(100_000, 30_000)/workers) * (takes + takes/9 + 180*time.Millisecond)
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var mu sync.Mutex
		var wg sync.WaitGroup
		for range workers {
			wg.Go(func() {
				for time.Since(start) < enough {
					_, err := backoff.Retry(t.Context(), backoff.Policy{}, func(context.Context) (int, error) {
						if takes > 0 {
							time.Sleep(takes)
						}
						if rand.IntN(10) == 0 {
							return 0, status(503)
						}
						return 0, nil
					}, &backoff.Options{Breaker: breaker, Budget: backoff.Budget{Retries: 20}})
					if err != nil {
						t.Error(err)
					}
					mu.Lock()
					done++
					mu.Unlock()
				}
			})
		}
		wg.Wait()
	})
	return done
}

// TestBreakerThroughput checks that random failures, one in ten requests, do not open
// the breaker for long. If requests take no time, all operations except one always wait,
// and an open breaker costs the most. A ratio under 0.9 can be chance. It is then
// measured again, up to eight times, and the counts are added.
func TestBreakerThroughput(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("simulates many operations")
	}
	for _, workers := range []int{2, 8, 32, 128} {
		for _, takes := range []time.Duration{0, 100 * time.Millisecond, 5 * time.Second} {
			var with, without int
			var ratio float64
			for measured := 0; measured < 8 && ratio < 0.9; measured++ {
				with += throughput(t, new(backoff.Breaker), workers, takes)
				without += throughput(t, backoff.NoBreaker, workers, takes)
				ratio = float64(with) / float64(without)
			}
			t.Logf("%3d operations at a time, requests of %v: throughput %.3f of that without a breaker (%d and %d operations)", workers, takes, ratio, with, without)
			if ratio < 0.9 {
				t.Errorf("%d operations at a time, requests of %v: throughput %.3f of that without a breaker, want 0.9", workers, takes, ratio)
			}
		}
	}
}

// opened returns operations that fail together and open their breaker. An
// admitted operation sends its number to passed.
func opened(t *testing.T, n int) (ops []*backoff.Waiter, passed chan int, cancel []context.CancelFunc) {
	breaker := new(backoff.Breaker)
	passed = make(chan int, n)
	start := make(chan struct{})
	for i := range n {
		ctx, stop := context.WithCancel(t.Context())
		cancel = append(cancel, stop)
		w := &backoff.Waiter{Breaker: breaker, Policy: noJitter, Budget: backoff.Budget{For: time.Hour}}
		ops = append(ops, w)
		go func() {
			<-start
			if err := w.Wait(ctx, backoff.Failure{}); err == nil {
				passed <- i
			}
		}()
	}
	close(start)
	return ops, passed, cancel
}

// TestBreakerHandsOver checks that the next operation makes a probe as soon as the
// previous prober ends, for any reason. Operations that were canceled while they waited
// do not get a turn.
func TestBreakerHandsOver(t *testing.T) {
	for _, tt := range []struct {
		name string
		end  func(ctx context.Context, w *backoff.Waiter, cancel context.CancelFunc)
		wait time.Duration
	}{
		{"closed", func(_ context.Context, w *backoff.Waiter, _ context.CancelFunc) { w.Close() }, 0},
		{"succeeded", func(_ context.Context, w *backoff.Waiter, _ context.CancelFunc) { w.Succeeded() }, 0},
		{"failed alone", func(ctx context.Context, w *backoff.Waiter, _ context.CancelFunc) {
			go w.Wait(ctx, backoff.Failure{Alone: true})
		}, 0},
		{"canceled", func(ctx context.Context, w *backoff.Waiter, cancel context.CancelFunc) {
			cancel()
			if err := w.Wait(ctx, backoff.Failure{}); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}, time.Second},
		{"failed", func(ctx context.Context, w *backoff.Waiter, _ context.CancelFunc) {
			go w.Wait(ctx, backoff.Failure{})
		}, time.Second},
		{"failed with Retry-After", func(ctx context.Context, w *backoff.Waiter, _ context.CancelFunc) {
			go w.Wait(ctx, backoff.Failure{RetryAfter: 20 * time.Second})
		}, 20 * time.Second},
		{"spent", func(ctx context.Context, w *backoff.Waiter, _ context.CancelFunc) {
			w.Budget = backoff.Budget{Retries: -1}
			if err := w.Wait(ctx, backoff.Failure{}); !errors.Is(err, backoff.ErrRetriesExhausted) {
				t.Error(err)
			}
		}, time.Second},
		{"takes long", func(context.Context, *backoff.Waiter, context.CancelFunc) {}, 32 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ops, passed, cancel := opened(t, 8)
				prober := <-passed
				synctest.Wait()
				if len(passed) > 0 {
					t.Fatal("two operations probe at a time")
				}
				left := (prober + 1) % len(ops)
				for i := range ops {
					if i != prober && i != left {
						cancel[i]()
					}
				}
				start := time.Now()
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				tt.end(ctx, ops[prober], stop)
				if next := <-passed; next != left || time.Since(start) != tt.wait {
					t.Errorf("operation %d after %d, %v later, want %d after %v", next, prober, time.Since(start), left, tt.wait)
				}
			})
		})
	}
}

// TestBreakerLosesNoOperation runs operations whose requests end in every way, at
// random, and checks that each of them ends.
func TestBreakerLosesNoOperation(t *testing.T) {
	if testing.Short() {
		t.Skip("checks many values")
	}
	for range testsize.Full(30, 10) {
		seed := testsize.Seed(t)
		synctest.Test(t, func(t *testing.T) {
			breaker := &backoff.Breaker{Threshold: 1 + int(seed%6)}
			start := time.Now()
			var wg sync.WaitGroup
			for i := range 64 {
				r := rand.New(rand.NewPCG(seed, uint64(i)))
				wg.Go(func() {
					for range 20 {
						ctx, cancel := context.WithCancel(t.Context())
						if r.IntN(3) == 0 {
							time.AfterFunc(time.Duration(r.Int64N(int64(3*time.Minute))), cancel)
						}
						misbehave(ctx, breaker, r)
						cancel()
					}
				})
			}
			wg.Wait()
			if took := time.Since(start); took > 12*time.Hour {
				t.Errorf("seed %d: ended after %v", seed, took)
			}
			// The breaker must not keep a state that holds a later operation.
			c := crowd{breaker: breaker, policy: noJitter, up: never}
			c.run(t, 1)
			if len(c.requests) != 6 || c.requests[5] != 31*time.Second {
				t.Errorf("seed %d: requests at %v", seed, c.requests)
			}
		})
	}
}

// misbehave runs one operation.
func misbehave(ctx context.Context, breaker *backoff.Breaker, r *rand.Rand) {
	w := backoff.Waiter{Breaker: breaker, Policy: backoff.Policy{Jitter: backoff.Jitter(r.IntN(6))}}
	if r.IntN(2) == 0 {
		w.Budget.For = time.Duration(r.Int64N(int64(5 * time.Minute)))
	}
	if r.IntN(10) == 0 {
		w.Before = func(backoff.Pause) error {
			if r.IntN(5) == 0 {
				return io.EOF
			}
			return nil
		}
	}
	defer w.Close()
	for {
		time.Sleep(time.Duration(r.Int64N(int64(time.Minute))) * time.Duration(r.IntN(2)))
		var f backoff.Failure
		switch r.IntN(12) {
		case 0:
			w.Succeeded()
			return
		case 1:
			w.Succeeded()
			w.Progress()
		case 2:
			return
		case 3:
			f.Alone = true
		case 4:
			f.RetryAfter = time.Duration(r.Int64N(int64(time.Hour)))
		case 5:
			go w.Succeeded()
		}
		if w.Wait(ctx, f) != nil {
			return
		}
	}
}

// TestOpenBreakerBlocksOnlyRetries checks that neither an operation whose failure concerns it alone waits at an open breaker, nor one
// that must not retry.
func TestOpenBreakerBlocksOnlyRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		breaker := &backoff.Breaker{Threshold: 1}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for range 2 { // one probes, and the other one waits
			go (&backoff.Waiter{Breaker: breaker, Policy: noJitter}).Wait(ctx, backoff.Failure{})
		}
		time.Sleep(1500 * time.Millisecond)
		for _, tt := range []struct {
			failure backoff.Failure
			budget  backoff.Budget
			want    error
			took    time.Duration
		}{
			{backoff.Failure{Alone: true}, backoff.Budget{}, nil, time.Second},
			{backoff.Failure{}, backoff.Budget{Retries: -1}, backoff.ErrRetriesExhausted, 0},
		} {
			w := backoff.Waiter{Breaker: breaker, Policy: noJitter, Budget: tt.budget}
			began := time.Now()
			if err := w.Wait(ctx, tt.failure); !errors.Is(err, tt.want) || time.Since(began) != tt.took || !breaker.Open() {
				t.Errorf("%+v: %v after %v, want %v after %v; open %v", tt.failure, err, time.Since(began), tt.want, tt.took, breaker.Open())
			}
		}
	})
}

// TestBreakerIgnoresFailuresOfOneOperation checks that other operations are not
// held by an operation that always fails.
func TestBreakerIgnoresFailuresOfOneOperation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		breaker := new(backoff.Breaker)
		var wg sync.WaitGroup
		wg.Go(func() {
			(&crowd{breaker: breaker, up: never, start: time.Now()}).operation(t.Context())
		})
		for range 10 {
			time.Sleep(3 * time.Second)
			w := backoff.Waiter{Breaker: breaker, Policy: noJitter}
			start := time.Now()
			if err := w.Wait(t.Context(), backoff.Failure{}); err != nil || time.Since(start) != time.Second {
				t.Errorf("one failure: %v after %v", err, time.Since(start))
			}
			w.Succeeded()
			w.Close()
		}
		wg.Wait()
	})
}

// TestBreakerStaysOpenForFirstRequests checks that only retries close the breaker: a
// service that starts sessions but refuses data would otherwise get as many
// probes at a time as sessions were started since the breaker opened.
func TestBreakerStaysOpenForFirstRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := crowd{breaker: new(backoff.Breaker), policy: noJitter, up: never}
		go func() {
			for range 300 {
				time.Sleep(100 * time.Millisecond)
				w := backoff.Waiter{Breaker: c.breaker}
				w.Succeeded()
				w.Close()
			}
		}()
		ctx, cancel := context.WithTimeout(t.Context(), 31*time.Second)
		defer cancel()
		c.start = time.Now()
		var wg sync.WaitGroup
		for range 32 {
			wg.Go(func() { _ = c.operation(ctx) })
		}
		wg.Wait()
		if len(c.requests) > 32+5 {
			t.Errorf("%d requests of 32 operations", len(c.requests))
		}
	})
}

// TestBreakerSuccessDoesNotAllocate checks the path of every successful request.
func TestBreakerSuccessDoesNotAllocate(t *testing.T) {
	for _, breaker := range []*backoff.Breaker{nil, backoff.NoBreaker, new(backoff.Breaker)} {
		w := backoff.Waiter{Breaker: breaker}
		if n := testing.AllocsPerRun(100, func() { w.Succeeded(); w.Close() }); n != 0 {
			t.Errorf("%v allocations", n)
		}
	}
}

// This example shows a breaker that two parts of a program share, and one that is
// switched off.
func ExampleBreaker() {
	breaker := new(backoff.Breaker)
	read := backoff.Options{Breaker: breaker}
	write := backoff.Options{Breaker: breaker}
	probe := backoff.Options{Breaker: backoff.NoBreaker}
	fmt.Println(read.Breaker == write.Breaker, probe.Breaker.Threshold)
	// Output: true -1
}

func BenchmarkBreakerSucceeded(b *testing.B) {
	w := backoff.Waiter{Breaker: new(backoff.Breaker)}
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			w.Succeeded()
		}
	})
}
