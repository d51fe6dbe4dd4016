package engine

import (
	"context"
	"time"

	"gcsup/backoff"
	"gcsup/internal/decide"
	"gcsup/session"
)

// Retry waits before every retry of an upload, reports each wait, and keeps
// the history that an error shows when the budget is spent.
type Retry struct {
	waiter  backoff.Waiter
	Budget  *SharedBudget
	staked  int64 // what this upload has added to the budget
	post    func(Note)
	Retries int

	// regulated is set if the last reply was a 429 that lowers the rate of the bucket. The rate
	// then determines when this and other uploads make requests. The circuit breaker must not: as long as others use
	// all of the rate, its probes would be refused, and it would not open.
	regulated bool

	// These are since the last progress.
	history  []session.Wait
	attempts int       // requests
	failing  time.Time // time of the first failure
}

// newRetry returns the Retry of one upload, or of one part.
func newRetry(u *Uplink, post func(Note)) *Retry {
	r := &Retry{Budget: u.Budget, post: post}
	r.waiter.Policy, r.waiter.Breaker = u.Policy, u.Breaker
	r.waiter.Budget.For, r.waiter.Budget.Retries = u.Budget.rule.Time, u.Budget.rule.Retries
	return r
}

// Wait waits before the retry of an exchange that failed with cause. retryAfter is
// the wait that the server requested. It returns the cause of ctx when that is done, and
// an error that wraps [session.ErrRetriesExhausted] when the budget is spent, or
// [backoff.ErrPermanent] if the caller decides so.
func (r *Retry) Wait(ctx context.Context, cause *session.Error, retryAfter time.Duration) error {
	if permanent := r.Budget.rule.Permanent; permanent != nil {
		last := *cause
		last.Attempts, last.Waits = r.attempts, r.history
		if permanent(&last) {
			return r.Failure(&last, backoff.ErrPermanent)
		}
	}
	if len(r.history) == 0 {
		r.failing = time.Now()
	}
	r.waiter.Budget.AtStake = r.Budget.AtStake()
	r.waiter.Before = func(p backoff.Pause) error {
		r.waiter.Budget.AtStake = r.Budget.AtStake() // a batch grows while its uploads wait
		why := decide.Short(cause)
		if p.Blocked {
			why += "; another upload is probing"
			if r.Budget.Blocked != nil {
				r.Budget.Blocked()
			}
		}
		r.history = append(r.history, session.Wait{Delay: p.Delay, Cause: why})
		failed := *cause // cause gets the history if the upload fails
		r.post(Note{Kind: Waiting, Delay: p.Delay, Retry: p.Failures, Blocked: p.Blocked, Cause: why, Err: &failed})
		return nil
	}
	err := r.waiter.Wait(ctx, backoff.Failure{RetryAfter: retryAfter, Alone: decide.Alone(cause) || r.regulated})
	switch {
	case err == nil:
		r.Retries++
		return nil
	case ctx.Err() != nil:
		return err
	}
	spent := *cause
	spent.Since = r.failing
	return r.Failure(&spent, session.ErrRetriesExhausted)
}

// Succeeded records that the service works again. It may be called from any
// goroutine.
func (r *Retry) Succeeded() { r.waiter.Succeeded() }

// Waited returns how long the waits took.
func (r *Retry) Waited() time.Duration { return r.waiter.Waited() }

// Close records that the upload ended, or gave up a request. Other uploads no longer wait for the outcome.
func (r *Retry) Close() { r.waiter.Close() }

// Progressed records that the server committed more bytes.
func (r *Retry) Progressed() {
	r.waiter.Progress()
	r.history, r.attempts = nil, 0
}

// Stake raises the bytes at stake for this upload to n.
func (r *Retry) Stake(n int64) {
	if n > r.staked {
		r.Budget.staked.Add(n - r.staked)
		r.staked = n
	}
}

// Failure adds the history to the error of an exchange. more becomes the kind of e,
// or its cause if it has a kind.
func (r *Retry) Failure(e *session.Error, more error) error {
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
