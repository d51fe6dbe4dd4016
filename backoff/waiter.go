package backoff

import (
	"context"
	"math/rand/v2"
	"time"
)

// A Waiter waits between the attempts of one operation. It is the loop inside
// [Retry], for programs that have a loop of their own, such as an uploader that
// asks the server what it holds before it sends again:
//
//	waiter := backoff.Waiter{Gate: shared}
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
// The zero value waits as the zero [Policy] says, at most 5 times. A Waiter is
// for one goroutine, except for Succeeded. It must not be copied after its first
// use.
type Waiter struct {
	// Policy gives the length of each wait. The zero value is Google's
	// truncated exponential backoff.
	Policy Policy

	// Budget says when to stop. The zero value allows 5 retries without
	// progress.
	Budget Budget

	// Gate is what all operations on one endpoint share. A nil Gate holds no
	// operation.
	Gate *Gate

	// Before, if not nil, is called before each wait. If it returns an error,
	// Wait ends with that error and does not wait.
	Before func(Pause) error

	// Counters, if not nil, counts the waits.
	Counters *Counters

	failing time.Time     // the first failure since the last progress
	waited  time.Duration // sum of all waits
	place   place         // in the Gate
}

// A Failure describes why an attempt failed.
type Failure struct {
	// RetryAfter is what the server asked for, see [RetryAfter]; 0 stands for
	// nothing.
	RetryAfter time.Duration

	// Alone means that the failure concerns this operation and is no sign
	// that the service fails, see [ObjectRateLimit]. The Gate then neither
	// counts the failure nor holds the retry.
	Alone bool
}

// A Pause is a wait that is about to begin.
type Pause struct {
	Delay    time.Duration // its length; the most that it is, if Held
	Failures int           // attempts that failed since the last progress, from 1
	Held     bool          // the operation's own backoff is over, and it waits for the Gate
}

// Wait notes that an attempt failed, and waits until the next one is due: for
// the backoff of this operation first, and then until the Gate lets it through.
//
// While the Gate holds the operation, Before is called at least every
// Policy.Maximum.
//
// It returns nil when the next attempt may be made, [ErrBudget] when the budget
// is spent, the cause of ctx when that is done, or the error of Before.
// [Budget.For] counts from the first failure since the last progress: an attempt
// that ran well for an hour and then failed has not used it up.
func (w *Waiter) Wait(ctx context.Context, f Failure) error {
	if w.Budget.Failures() == 0 {
		w.failing = time.Now()
	}
	w.Budget.Failed()
	random := rand.Float64()
	if f.Alone {
		w.Gate.leave(&w.place)
	} else {
		w.Gate.failed(&w.place, w.Policy, random, f.RetryAfter)
	}
	err := w.backOff(ctx, random, f.RetryAfter)
	if err == nil && !f.Alone {
		err = w.passGate(ctx)
	}
	if err != nil {
		w.Gate.leave(&w.place)
	}
	return err
}

// backOff waits as long as the policy or the server asks.
func (w *Waiter) backOff(ctx context.Context, random float64, retryAfter time.Duration) error {
	delay, ok := w.Budget.Next(w.Policy, random, retryAfter, time.Since(w.failing))
	if !ok {
		w.Counters.spent()
		return ErrBudget
	}
	return w.pause(ctx, Pause{Delay: delay}, nil)
}

// passGate waits until the gate lets the operation through.
func (w *Waiter) passGate(ctx context.Context) error {
	longest := w.Policy.withDefaults().Maximum
	turn := w.Gate.enter(&w.place, longest)
	if turn == nil {
		return nil
	}
	w.Counters.held()
	for {
		left := w.Budget.holdable(w.Policy, time.Since(w.failing))
		if left <= 0 {
			w.Counters.spent()
			return ErrBudget
		}
		start := time.Now()
		if err := w.pause(ctx, Pause{Delay: min(left, longest), Held: true}, turn); err != nil {
			return err
		}
		w.Budget.held += time.Since(start)
		select {
		case <-turn:
			return nil
		default:
		}
	}
}

// pause calls Before, and waits for p.Delay, until turn is closed, or until ctx
// is done. It returns the error of Before or the cause of ctx.
func (w *Waiter) pause(ctx context.Context, p Pause, turn <-chan struct{}) error {
	if w.Before != nil {
		p.Failures = w.Budget.Failures()
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

// Progress notes that the server did something that will not have to be done
// again. The whole budget is available again, and waits start from the shortest.
func (w *Waiter) Progress() { w.Budget.Progress() }

// Succeeded notes that the service did what the attempt under way asked for, so
// that the Gate lets more retries through. It may be called from any goroutine,
// and before the attempt ends.
func (w *Waiter) Succeeded() { w.Gate.succeeded(&w.place) }

// Close notes that the operation ended. If it was its turn at the Gate, another
// operation takes it. Only a Waiter with a Gate needs it. It may be called
// twice.
func (w *Waiter) Close() { w.Gate.leave(&w.place) }

// Waited returns the sum of all waits so far.
func (w *Waiter) Waited() time.Duration { return w.waited }
