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
	"gcsup/internal/require"
)

// noJitter has waits of 1, 2, 4, … seconds.
var noJitter = backoff.Policy{Jitter: backoff.NoJitter}

// TestWaiterStartsOverAfterProgress checks each wait, and that progress restores the budget,
// and with it the time that Budget.For counts.
func TestWaiterStartsOverAfterProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var last backoff.Pause
		w := backoff.Waiter{Policy: noJitter, Budget: backoff.Budget{For: 4 * time.Second}, Before: func(p backoff.Pause) error {
			last = p
			return nil
		}}
		for range 5 {
			for i := range 2 {
				start := time.Now()
				require.NoError(t, w.Wait(t.Context(), backoff.Failure{}))
				if want := (backoff.Pause{Delay: time.Second << i, Failures: i + 1}); last != want || time.Since(start) != want.Delay {
					t.Errorf("wait %d took %v: %+v, want %+v", i, time.Since(start), last, want)
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
