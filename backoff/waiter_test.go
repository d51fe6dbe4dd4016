package backoff_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gcsup/backoff"
)

// noJitter has waits of 1, 2, 4, … seconds.
var noJitter = backoff.Policy{Jitter: backoff.NoJitter}

// TestWaiterStopsWhenTheBudgetIsSpent checks each wait, and that Wait fails
// when the budget is spent.
func TestWaiterStopsWhenTheBudgetIsSpent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var pauses []backoff.Pause
		w := backoff.Waiter{Policy: noJitter, Budget: backoff.Budget{Retries: 3}, Before: func(p backoff.Pause) error {
			pauses = append(pauses, p)
			return nil
		}}
		start := time.Now()
		for i := range 3 {
			if err := w.Wait(t.Context(), backoff.Failure{}); err != nil {
				t.Fatalf("wait %d: %v", i, err)
			}
		}
		if err := w.Wait(t.Context(), backoff.Failure{}); !errors.Is(err, backoff.ErrRetriesExhausted) {
			t.Errorf("fourth wait: %v, want ErrRetriesExhausted", err)
		}
		if took := time.Since(start); took != 7*time.Second || w.Waited() != took {
			t.Errorf("waited %v in %v, want 1 + 2 + 4 s", w.Waited(), took)
		}
		for i, p := range pauses {
			if want := (backoff.Pause{Delay: time.Second << i, Failures: i + 1}); p != want {
				t.Errorf("pause %d = %+v, want %+v", i, p, want)
			}
		}
	})
}

// TestWaiterStartsOverAfterProgress checks that progress restores the budget,
// and with it the time that Budget.For counts.
func TestWaiterStartsOverAfterProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := backoff.Waiter{Policy: noJitter, Budget: backoff.Budget{For: 4 * time.Second}}
		for range 5 {
			for i := range 2 {
				start := time.Now()
				if err := w.Wait(t.Context(), backoff.Failure{}); err != nil {
					t.Fatal(err)
				}
				if d := time.Since(start); d != time.Second<<i {
					t.Errorf("wait %d took %v", i, d)
				}
			}
			w.Progress()
			time.Sleep(time.Hour) // the attempt runs well for an hour
		}
	})
}

// TestWaiterBlocked checks that an operation that is blocked by an open breaker uses no
// tries, calls Before at least every Policy.Maximum, and ends.
func TestWaiterBlocked(t *testing.T) {
	for _, tt := range []struct {
		name   string
		policy backoff.Policy
		budget backoff.Budget
		delays []time.Duration // the first is the operation's own backoff
	}{
		// (1 + 2 + 4 + 8 + 16) s, twice.
		{"5 retries", noJitter, backoff.Budget{}, []time.Duration{time.Second, 32 * time.Second, 30 * time.Second}},
		{"one try", noJitter, backoff.Budget{Retries: 1}, []time.Duration{time.Second, 2 * time.Second}},
		// 5 times 2 s, twice.
		{"short waits", backoff.Policy{Initial: 2 * time.Second, Maximum: 2 * time.Second}, backoff.Budget{}, slices.Repeat([]time.Duration{2 * time.Second}, 11)},
		// (1 + 9 times 2) s, twice.
		{"bytes at stake", backoff.Policy{Maximum: 2 * time.Second, Jitter: backoff.NoJitter}, backoff.Budget{AtStake: 64 << 20},
			append([]time.Duration{time.Second}, slices.Repeat([]time.Duration{2 * time.Second}, 19)...)},
		{"for", noJitter, backoff.Budget{For: 40 * time.Second}, []time.Duration{time.Second, 32 * time.Second, 7 * time.Second}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				breaker := &backoff.Breaker{Threshold: 2}
				prober := backoff.Waiter{Breaker: breaker, Policy: backoff.Policy{Initial: time.Millisecond, Maximum: 59 * time.Second, Jitter: backoff.NoJitter}}
				defer prober.Close()
				var delays []time.Duration
				var counters backoff.Counters
				w := backoff.Waiter{Breaker: breaker, Policy: tt.policy, Budget: tt.budget, Counters: &counters, Before: func(p backoff.Pause) error {
					if p.Blocked != (len(delays) > 0) || p.Failures != 1 {
						t.Errorf("pause %d = %+v", len(delays), p)
					}
					delays = append(delays, p.Delay)
					return nil
				}}
				defer w.Close()
				ctx, cancel := context.WithCancel(t.Context())
				var wg sync.WaitGroup
				wg.Go(func() {
					var f backoff.Failure
					for prober.Wait(ctx, f) == nil {
						time.Sleep(50 * time.Second) // its request
						f.RetryAfter = 59 * time.Second
					}
				})
				defer wg.Wait()
				defer cancel()
				start := time.Now()
				if err := w.Wait(t.Context(), backoff.Failure{}); !errors.Is(err, backoff.ErrRetriesExhausted) {
					t.Errorf("Wait = %v, want ErrRetriesExhausted", err)
				}
				var want time.Duration
				for _, d := range tt.delays {
					want += d
				}
				if took := time.Since(start); took != want || w.Waited() != want || !slices.Equal(delays, tt.delays) {
					t.Errorf("waited %v in %v: %v, want %v: %v", w.Waited(), took, delays, want, tt.delays)
				}
				if c := counters.Counts(); c.Blocked != 1 || c.BudgetSpent != 1 {
					t.Errorf("Counts() = %+v", c)
				}
			})
		})
	}
}

// TestWaiterEndsEarly checks that a canceled context and an error of Before end
// a wait.
func TestWaiterEndsEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		why := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(100*time.Millisecond, func() { cancel(why) })
		w := backoff.Waiter{}
		if err := w.Wait(ctx, backoff.Failure{}); err != why || w.Waited() != 100*time.Millisecond {
			t.Errorf("canceled: %v after %v", err, w.Waited())
		}
		w = backoff.Waiter{Before: func(backoff.Pause) error { return why }}
		if err := w.Wait(t.Context(), backoff.Failure{}); err != why || w.Waited() != 0 {
			t.Errorf("refused by Before: %v after %v", err, w.Waited())
		}
	})
}
