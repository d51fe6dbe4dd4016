package backoff_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"gcsup/backoff"
)

// noJitter makes waits of 1, 2, 4, … seconds.
var noJitter = backoff.Policy{Jitter: backoff.NoJitter}

// TestWaiterStopsWhenTheBudgetIsSpent checks each wait, and that the budget
// ends them.
func TestWaiterStopsWhenTheBudgetIsSpent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var pauses []backoff.Pause
		w := backoff.Waiter{Policy: noJitter, Budget: backoff.Budget{Tries: 3}, Before: func(p backoff.Pause) error {
			pauses = append(pauses, p)
			return nil
		}}
		start := time.Now()
		for i := range 3 {
			if err := w.Wait(t.Context(), 0); err != nil {
				t.Fatalf("wait %d: %v", i, err)
			}
		}
		if err := w.Wait(t.Context(), 0); !errors.Is(err, backoff.ErrBudget) {
			t.Errorf("fourth wait: %v, want ErrBudget", err)
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
				if err := w.Wait(t.Context(), 0); err != nil {
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

// TestWaiterObeysRetryAfterOnce checks that Retry-After lengthens one wait, even
// if no token is left afterwards.
func TestWaiterObeysRetryAfterOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		throttle := &backoff.Throttle{}
		for throttle.Allow() {
		}
		var delays []time.Duration
		w := backoff.Waiter{Policy: noJitter, Throttle: throttle, Before: func(p backoff.Pause) error {
			delays = append(delays, p.Delay)
			if p.Throttled != (len(delays) > 1) {
				t.Errorf("pause %d: Throttled = %v", len(delays), p.Throttled)
			}
			return nil
		}}
		if err := w.Wait(t.Context(), 20*time.Second); err != nil {
			t.Fatal(err)
		}
		if len(delays) < 2 || delays[0] != 20*time.Second || delays[1] != time.Second {
			t.Errorf("delays = %v", delays)
		}
	})
}

// TestWaiterEndsEarly checks the two ways in which a wait ends before its time.
func TestWaiterEndsEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		why := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(100*time.Millisecond, func() { cancel(why) })
		w := backoff.Waiter{}
		if err := w.Wait(ctx, 0); err != why || w.Waited() != 100*time.Millisecond {
			t.Errorf("cancelled: %v after %v", err, w.Waited())
		}
		w = backoff.Waiter{Before: func(backoff.Pause) error { return why }}
		if err := w.Wait(t.Context(), 0); err != why || w.Waited() != 0 {
			t.Errorf("refused by Before: %v after %v", err, w.Waited())
		}
	})
}
