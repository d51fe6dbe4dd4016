package backoff

import (
	"context"
	"errors"
	"time"
)

// maxHistory bounds Error.History. An operation that makes progress may be
// tried without end.
const maxHistory = 32

// Options of [Retry]. The zero value is good.
type Options struct {
	// Budget says when to stop. The zero value allows 5 retries without
	// progress. Retry works on a copy.
	Budget Budget

	// Gate is what all operations on one endpoint share. A nil Gate holds no
	// operation.
	Gate *Gate

	// Classify tells what is worth another try. nil is the function
	// [Classify].
	Classify func(error) Verdict

	// Refresh makes credentials new when the verdict is [Credentials]; the
	// operation is then tried once more, at once. nil makes that verdict
	// permanent.
	Refresh func(context.Context) error

	// Observe, if not nil, is called after each attempt, before the wait that
	// follows. While the Gate holds the operation it is called again before
	// each further [Pause].
	Observe func(Attempt)

	// Counters, if not nil, counts what happens.
	Counters *Counters
}

// An Attempt is one call of an operation, as an observer sees it.
type Attempt struct {
	Number   int           // 1 for the first call
	Err      error         // nil: it succeeded
	Verdict  Verdict       // what Err is; Permanent, and without meaning, if Err is nil
	Progress bool          // Err was marked by Progress
	Held     bool          // no new call: the wait after this one is over, and the Gate holds the next call
	Wait     time.Duration // the wait that follows, if Held the most that it is; 0: none, it is the end or a call with new credentials
}

// Retry calls op until it succeeds, and waits between the calls as p says, or
// as long as the server asks for in a [StatusError]. The two other calls to
// know are [Verdict.Mark] and [Progress], with which op says more about its
// error.
//
// It returns what op returned last. The error is nil or an *[Error], which
// says how often op was called and why no more: the error was permanent, the
// budget was spent, or ctx was done. It also stops, without waiting, when ctx
// has a deadline and the next wait would not fit. A p that its Validate refuses
// is an error before the first call.
//
// op is called on the caller's goroutine, never again after Retry has returned.
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

// operation is one operation that is tried until it succeeds.
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
	o.waiter = Waiter{Policy: p, Budget: o.Budget, Gate: o.Gate, Counters: o.Counters}
	return o
}

// succeeded notes that the attempt just made is the last and succeeded.
func (o *operation) succeeded() {
	o.number++
	o.waiter.Succeeded()
	o.Counters.attempt(nil)
	o.observe(Attempt{Number: o.number})
}

// failed notes that the attempt just made failed with err. It waits until the
// next is due and returns nil, or returns why there is none.
func (o *operation) failed(ctx context.Context, err error) error {
	o.number++
	o.Counters.attempt(err)
	a := Attempt{Number: o.number, Err: err, Verdict: o.Classify(err), Progress: isProgress(err)}
	if ctx.Err() != nil {
		return o.end(a, context.Cause(ctx))
	}
	if a.Progress {
		// The server did work for us: so far the attempt is a success.
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

// wait waits after attempt a until the next is due.
func (o *operation) wait(ctx context.Context, a Attempt) error {
	begun := false // a wait for a is under way, and recorded
	o.waiter.Before = func(p Pause) error {
		if deadline, ok := ctx.Deadline(); ok && !p.Held && time.Until(deadline) < p.Delay {
			return context.DeadlineExceeded
		}
		begun = true
		a.Wait, a.Held = p.Delay, p.Held
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
		a.Held = begun
		return o.end(a, err)
	}
}

// failure returns what the waiter must know of err.
func failure(err error) Failure {
	f := Failure{RetryAfter: retryAfter(err)}
	if status, ok := errors.AsType[*StatusError](err); ok {
		f.Alone = ObjectRateLimit(status.Code, status.Reason, status.Message)
	}
	return f
}

// end records a, after which there is no other attempt because of stop.
func (o *operation) end(a Attempt, stop error) error {
	a.Wait = 0
	o.record(a)
	return o.stopped(stop, a.Err)
}

func (o *operation) stopped(stop, err error) error {
	return &Error{Stop: stop, Err: err, Attempts: o.number, Waited: o.waiter.Waited(), History: o.history}
}

// record keeps a for the history and shows it to the observer.
func (o *operation) record(a Attempt) {
	if !a.Held {
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
