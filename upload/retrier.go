package upload

import (
	"context"
	"time"

	"gcsup/backoff"
	"gcsup/session"
)

// retrier waits before every retry of an upload, reports each wait, and keeps
// the history that an error shows when the budget is spent.
type retrier struct {
	waiter  backoff.Waiter
	budget  *budget
	staked  int64 // what this upload has added to the budget
	post    func(note)
	retries int

	// These are since the last progress.
	history  []session.Wait
	attempts int       // requests
	failing  time.Time // time of the first failure
}

// newRetrier returns a retrier that reports each wait to post. The caller must call
// [retrier.close].
func newRetrier(p backoff.Policy, gate *backoff.Gate, b *budget, post func(note)) *retrier {
	return &retrier{
		waiter: backoff.Waiter{Policy: p, Gate: gate, Budget: backoff.Budget{For: b.rule.time, Tries: b.rule.tries}},
		budget: b,
		post:   post,
	}
}

// Wait waits before the retry of an exchange that failed with cause. retryAfter is
// the wait that the server requested. It returns the cause of ctx when that is done, and
// an error that wraps [session.ErrRetriesExhausted] when the budget is spent, or
// [backoff.ErrPermanent] if the caller decides so.
func (r *retrier) Wait(ctx context.Context, cause *session.Error, retryAfter time.Duration) error {
	if permanent := r.budget.rule.permanent; permanent != nil {
		last := *cause
		last.Attempts, last.Waits = r.attempts, r.history
		if permanent(&last) {
			return r.failure(&last, backoff.ErrPermanent)
		}
	}
	if len(r.history) == 0 {
		r.failing = time.Now()
	}
	r.waiter.Budget.AtStake = r.budget.atStake()
	r.waiter.Before = func(p backoff.Pause) error {
		r.waiter.Budget.AtStake = r.budget.atStake() // a batch grows while its uploads wait
		why := cause.Short()
		if p.Held {
			why += "; another upload is probing"
			if r.budget.held != nil {
				r.budget.held()
			}
		}
		r.history = append(r.history, session.Wait{Delay: p.Delay, Cause: why})
		failed := *cause // cause gets the history if the upload fails
		r.post(note{kind: noteWaiting, delay: p.Delay, retry: p.Failures, held: p.Held, cause: why, err: &failed})
		return nil
	}
	err := r.waiter.Wait(ctx, backoff.Failure{RetryAfter: retryAfter, Alone: cause.Alone()})
	switch {
	case err == nil:
		r.retries++
		return nil
	case ctx.Err() != nil:
		return err
	}
	spent := *cause
	spent.Since = r.failing
	return r.failure(&spent, session.ErrRetriesExhausted)
}

// succeeded records that the service works again. It may be called from any
// goroutine.
func (r *retrier) succeeded() { r.waiter.Succeeded() }

// waited returns how long the waits took.
func (r *retrier) waited() time.Duration { return r.waiter.Waited() }

// close records that the upload ended.
func (r *retrier) close() { r.waiter.Close() }

// progressed records that the server committed more bytes.
func (r *retrier) progressed() {
	r.waiter.Progress()
	r.history, r.attempts = nil, 0
}

// stake raises the bytes at stake for this upload to n.
func (r *retrier) stake(n int64) {
	if n > r.staked {
		r.budget.staked.Add(n - r.staked)
		r.staked = n
	}
}

// failure adds the history to the error of an exchange. more becomes the kind of e,
// or its cause if it has a kind.
func (r *retrier) failure(e *session.Error, more error) error {
	e.Attempts, e.Waits = r.attempts, r.history
	switch {
	case more == nil:
	case e.Kind == nil:
		e.Kind = more
	default:
		e.Err = more
	}
	return e
}
