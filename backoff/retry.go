package backoff

import (
	"context"
	"errors"
	"time"

	"gcsup/internal/breaker"
)

// maxHistory is the maximum length of Error.History. An operation that makes
// progress may be retried indefinitely.
const maxHistory = 32

// Options are the options of [Retry]. The zero value is valid.
type Options struct {
	// Budget decides when to stop. The zero value allows 5 retries without
	// progress. Retry uses a copy.
	Budget Budget

	// Breaker is shared by all operations on one endpoint. A nil Breaker blocks
	// no operation.
	Breaker *Breaker

	// Classify returns the verdict on an error. nil means the function
	// [Classify].
	Classify func(error) Verdict

	// Refresh refreshes the credentials if the verdict is [Credentials]. The
	// operation is then retried once, without a wait. If Refresh is nil, that
	// verdict is permanent.
	Refresh func(context.Context) error

	// Observe, if not nil, is called after each attempt, before the next wait.
	// While the Breaker blocks the operation, Observe is called again before each
	// further [Pause].
	Observe func(Attempt)

	// Counters, if not nil, counts attempts, failures and waits.
	Counters *Counters
}

// An Attempt describes one call of an operation, for an observer.
type Attempt struct {
	Number   int     // 1 for the first call
	Err      error   // nil if it succeeded
	Verdict  Verdict // the class of Err; meaningless if Err is nil
	Progress bool    // Err was marked by Progress
	Blocked  bool    // there was no new call: the operation's own wait has ended, and the Breaker blocks the next call

	// Wait is the wait that follows, or its upper bound if Blocked. It is 0 after the last attempt, and
	// if the next one follows at once with new credentials.
	Wait time.Duration
}

// Retry calls op until it succeeds. Between the calls it waits as long as p
// requires, or as long as the server asks for in a [StatusError]. With
// [Verdict.Mark] and [Progress], op can describe its error. A nil opts uses the
// defaults.
//
// Retry returns the last result of op. The error is nil or an *[Error], which
// reports how often op was called and why Retry stopped: the error was
// permanent, the budget was spent, or ctx was done. Retry also stops, without a
// wait, if the next wait would end after the deadline of ctx. If
// [Policy.Validate] refuses p, Retry returns its error and does not call op.
//
// Retry calls op on the caller's goroutine.
func Retry[T any](ctx context.Context, p Policy, op func(context.Context) (T, error), opts *Options) (T, error) {
	if err := p.Validate(); err != nil {
		var none T
		return none, err
	}
	o := newOperation(p, opts)
	defer o.waiter.Close()
	for {
		result, err := op(ctx)
		if err == nil {
			o.succeeded()
			return result, nil
		}
		if stop := o.failed(ctx, err); stop != nil {
			return result, stop
		}
	}
}

// operation is one operation that is retried until it succeeds.
type operation struct {
	Options
	waiter    Waiter
	number    int  // attempts so far
	refreshed bool // credentials are new since the last progress
	history   []Attempt
}

func newOperation(p Policy, opts *Options) *operation {
	o := &operation{}
	if opts != nil {
		o.Options = *opts
	}
	if o.Classify == nil {
		o.Classify = Classify
	}
	o.waiter = Waiter{Policy: p, Budget: o.Budget, Breaker: o.Breaker, Counters: o.Counters}
	return o
}

// succeeded records that the last attempt succeeded.
func (o *operation) succeeded() {
	o.number++
	o.waiter.Succeeded()
	o.Counters.attempt(nil)
	o.observe(Attempt{Number: o.number})
}

// failed records that the last attempt failed with err. It waits until the next
// attempt is due and returns nil, or returns an error if there is no other
// attempt.
func (o *operation) failed(ctx context.Context, err error) error {
	o.number++
	o.Counters.attempt(err)
	a := Attempt{Number: o.number, Err: err, Verdict: o.Classify(err), Progress: isProgress(err)}
	if ctx.Err() != nil {
		return o.end(a, context.Cause(ctx))
	}
	if a.Progress {
		// The server did part of the work, which is a success for the breaker.
		o.waiter.Succeeded()
		o.waiter.Progress()
		o.refreshed = false
	}
	if a.Verdict == Credentials && o.Refresh != nil && !o.refreshed {
		refreshErr := o.Refresh(ctx)
		if refreshErr == nil {
			o.refreshed = true
			o.record(a)
			return nil
		}
		a.Err, a.Verdict = refreshErr, o.Classify(refreshErr)
	}
	if a.Verdict != Transient {
		return o.end(a, ErrPermanent)
	}
	return o.wait(ctx, a)
}

// wait waits until the attempt after a is due.
func (o *operation) wait(ctx context.Context, a Attempt) error {
	begun := false // the wait after a began and was recorded
	o.waiter.Before = func(p Pause) error {
		if deadline, ok := ctx.Deadline(); ok && !p.Blocked && time.Until(deadline) < p.Delay {
			return context.DeadlineExceeded
		}
		begun = true
		a.Wait, a.Blocked = p.Delay, p.Blocked
		o.record(a)
		return nil
	}
	switch err := o.waiter.Wait(ctx, failure(a.Err)); {
	case err == nil:
		o.Counters.retry(a.Err)
		return nil
	case begun && ctx.Err() != nil:
		return o.stopped(err, a.Err)
	default:
		a.Blocked = begun
		return o.end(a, err)
	}
}

// failure describes err for the waiter.
func failure(err error) Failure {
	f := Failure{RetryAfter: retryAfter(err)}
	if status, ok := errors.AsType[*StatusError](err); ok {
		f.Alone = breaker.ObjectRateLimit(status.Code, status.Reason, status.Message)
	}
	return f
}

// end records the last attempt a, and returns the error for the reason stop.
func (o *operation) end(a Attempt, stop error) error {
	a.Wait = 0
	o.record(a)
	return o.stopped(stop, a.Err)
}

func (o *operation) stopped(stop, err error) error {
	return &Error{Stop: stop, Err: err, Attempts: o.number, Waited: o.waiter.Waited(), History: o.history}
}

// record adds a to the history and calls the observer.
func (o *operation) record(a Attempt) {
	if !a.Blocked {
		if len(o.history) == maxHistory {
			copy(o.history, o.history[1:])
			o.history = o.history[:maxHistory-1]
		}
		o.history = append(o.history, a)
	}
	o.observe(a)
}

func (o *operation) observe(a Attempt) {
	if o.Observe != nil {
		o.Observe(a)
	}
}
