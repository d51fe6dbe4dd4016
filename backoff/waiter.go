package backoff

import (
	"context"
	"math/rand/v2"
	"time"

	"gcsup/internal/breaker"
)

// A Waiter waits between the attempts of one operation. It is for programs with
// their own retry loop, such as an uploader that queries the committed offset
// before it sends more data. [Retry] uses it too. A loop looks like this:
//
//	waiter := backoff.Waiter{Breaker: shared}
//	defer waiter.Close()
//	for {
//		err := attempt()
//		if err == nil {
//			waiter.Succeeded()
//			return nil
//		}
//		if stop := waiter.Wait(ctx, backoff.Failure{}); stop != nil {
//			return errors.Join(stop, err)
//		}
//	}
//
// The zero value waits as the zero [Policy] does, at most 5 times. A Waiter is
// for one goroutine; only Succeeded may be called from any. It must not be
// copied after its first use.
type Waiter struct {
	// Policy computes the length of each wait.
	Policy Policy

	// Budget decides when to stop.
	Budget Budget

	// Breaker is shared by all operations on one endpoint. A nil Breaker blocks
	// no operation.
	Breaker *Breaker

	// Before, if not nil, is called before each wait. If it returns an error,
	// Wait returns that error without a wait.
	Before func(Pause) error

	// Counters, if not nil, counts the waits.
	Counters *Counters

	failing time.Time         // when the first attempt since the last progress failed
	waited  time.Duration     // total length of all waits
	place   breaker.Operation // in the Breaker
}

// A Failure describes why an attempt failed.
type Failure struct {
	// RetryAfter is the wait that the server asked for, see [RetryAfter]; 0 if
	// it did not.
	RetryAfter time.Duration

	// Alone reports that the failure concerns only this operation and not the
	// whole service, such as a 429 because one object was changed too often. The
	// Breaker does not count such a failure and does not block the retry.
	Alone bool
}

// A Pause is a wait that is about to begin.
type Pause struct {
	Delay    time.Duration // its length, or its upper bound if Blocked
	Failures int           // attempts that failed since the last progress, from 1
	Blocked  bool          // the operation's own backoff has ended, and the Breaker blocks the retry
}

// Wait records that an attempt failed, and waits until the next one is due. It
// waits for the backoff of this operation first, and then until the Breaker admits
// the retry.
//
// While the Breaker blocks the operation, Before is called at least every
// Policy.Maximum.
//
// Wait returns nil when the next attempt may be made. It returns
// [ErrRetriesExhausted] if the budget is spent, the cause of ctx if ctx is done,
// or the error of Before. [Budget.For] counts from the first failure since the
// last progress. It does not include the time that an attempt took before it
// failed.
func (w *Waiter) Wait(ctx context.Context, f Failure) error {
	if w.Budget.failures == 0 {
		w.failing = time.Now()
	}
	w.Budget.failed()
	random := rand.Float64()
	if f.Alone {
		w.Breaker.leave(&w.place)
	} else {
		w.Breaker.failed(&w.place, w.Policy, random, f.RetryAfter)
	}
	err := w.backOff(ctx, random, f.RetryAfter)
	if err == nil && !f.Alone {
		err = w.passBreaker(ctx)
	}
	if err != nil {
		w.Breaker.leave(&w.place)
	}
	return err
}

// backOff waits as long as the policy or the server requires.
func (w *Waiter) backOff(ctx context.Context, random float64, retryAfter time.Duration) error {
	delay, ok := w.Budget.next(w.Policy, random, retryAfter, time.Since(w.failing))
	if !ok {
		w.Counters.spent()
		return ErrRetriesExhausted
	}
	return w.pause(ctx, Pause{Delay: delay}, nil)
}

// passBreaker waits until the breaker admits the operation.
func (w *Waiter) passBreaker(ctx context.Context) error {
	longest := w.Policy.withDefaults().Maximum
	turn := w.Breaker.enter(&w.place, longest)
	if turn == nil {
		return nil
	}
	w.Counters.blocked()
	for {
		left := w.Budget.blockable(w.Policy, time.Since(w.failing))
		if left <= 0 {
			w.Counters.spent()
			return ErrRetriesExhausted
		}
		start := time.Now()
		if err := w.pause(ctx, Pause{Delay: min(left, longest), Blocked: true}, turn); err != nil {
			return err
		}
		w.Budget.blocked += time.Since(start)
		select {
		case <-turn:
			return nil
		default:
		}
	}
}

// pause calls Before and waits until p.Delay has passed, turn is closed, or ctx
// is done. It returns the error of Before or the cause of ctx.
func (w *Waiter) pause(ctx context.Context, p Pause, turn <-chan struct{}) error {
	if w.Before != nil {
		p.Failures = w.Budget.failures
		if err := w.Before(p); err != nil {
			return err
		}
	}
	start := time.Now()
	timer := time.NewTimer(p.Delay)
	defer timer.Stop()
	defer func() {
		w.waited += time.Since(start)
		w.Counters.waited(time.Since(start))
	}()
	select {
	case <-timer.C:
		return nil
	case <-turn:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Progress records that the server completed work that need not be repeated. It
// restores the whole budget, and the next wait is the shortest again.
func (w *Waiter) Progress() { w.Budget.progress() }

// Succeeded records that the current attempt succeeded, so that the Breaker admits
// more retries. It may be called from any goroutine, and before the attempt
// ends.
func (w *Waiter) Succeeded() { w.Breaker.succeeded(&w.place) }

// Close records that the operation ended. If the Breaker had admitted the
// operation, it admits the next one. Only a Waiter with a Breaker must be closed.
// Close may be called more than once.
func (w *Waiter) Close() { w.Breaker.leave(&w.place) }

// Waited returns the total length of all waits so far.
func (w *Waiter) Waited() time.Duration { return w.waited }
