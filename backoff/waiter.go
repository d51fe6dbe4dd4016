package backoff

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// A Waiter waits between the attempts of one operation. It is the loop inside
// [Retry], for programs that have a loop of their own, such as an uploader that
// asks the server what it holds before it sends again:
//
//	waiter := backoff.Waiter{Throttle: shared}
//	for {
//		err := attempt()
//		if err == nil {
//			waiter.Succeeded()
//			return nil
//		}
//		if stop := waiter.Wait(ctx, 0); stop != nil {
//			return errors.Join(stop, err)
//		}
//	}
//
// The zero value waits as the zero [Policy] says, at most 5 times. A Waiter is
// for one goroutine, except for Succeeded.
type Waiter struct {
	// Policy gives the length of each wait. The zero value is Google's
	// truncated exponential backoff.
	Policy Policy

	// Budget says when to stop. The zero value allows 5 retries without
	// progress.
	Budget Budget

	// Throttle, if not nil, is a bucket that all operations on one service
	// share.
	Throttle *Throttle

	// Before, if not nil, is called before each wait. If it returns an error,
	// Wait ends with that error and does not wait.
	Before func(Pause) error

	// Counters, if not nil, counts the waits.
	Counters *Counters

	failing time.Time     // the first failure since the last progress
	waited  time.Duration // sum of all waits
	retried atomic.Bool   // the attempt under way took a token
}

// A Pause is a wait that is about to begin.
type Pause struct {
	Delay     time.Duration // its length
	Failures  int           // attempts that failed since the last progress, from 1
	Throttled bool          // it follows a wait that ended without a token
}

// Wait notes that an attempt failed, and waits until the next one is due.
// retryAfter is what the server asked for, see [RetryAfter]; 0 stands for
// nothing.
//
// It returns nil when the next attempt may be made, [ErrBudget] when the budget
// is spent, the cause of ctx when that is done, or the error of Before.
// [Budget.For] counts from the first failure since the last progress: an attempt
// that ran well for an hour and then failed has not used it up.
func (w *Waiter) Wait(ctx context.Context, retryAfter time.Duration) error {
	if w.Budget.Failures() == 0 {
		w.failing = time.Now()
	}
	w.Budget.Failed()
	for throttled := false; ; throttled = true {
		delay, ok := w.Budget.Next(w.Policy, rand.Float64(), retryAfter, time.Since(w.failing))
		if !ok {
			w.Counters.spent()
			return ErrBudget
		}
		if w.Before != nil {
			if err := w.Before(Pause{Delay: delay, Failures: w.Budget.Failures(), Throttled: throttled}); err != nil {
				return err
			}
		}
		if err := w.pause(ctx, delay); err != nil {
			return err
		}
		if w.Throttle.Allow() {
			w.retried.Store(true)
			return nil
		}
		w.Budget.Throttled()
		w.Counters.throttled()
		retryAfter = 0 // it was obeyed
	}
}

// pause waits for delay, or until ctx is done and returns the cause.
func (w *Waiter) pause(ctx context.Context, delay time.Duration) error {
	start := time.Now()
	timer := time.NewTimer(delay)
	defer timer.Stop()
	defer func() {
		w.waited += time.Since(start)
		w.Counters.waited(time.Since(start))
	}()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Progress notes that the server did something that will not have to be done
// again. The whole budget is available again, and waits start from the shortest.
func (w *Waiter) Progress() { w.Budget.Progress() }

// Succeeded notes that the attempt under way succeeded, so that the Throttle
// lets more retries through. It may be called from any goroutine.
func (w *Waiter) Succeeded() { w.Throttle.Succeeded(w.retried.Swap(false)) }

// Waited returns the sum of all waits so far.
func (w *Waiter) Waited() time.Duration { return w.waited }
