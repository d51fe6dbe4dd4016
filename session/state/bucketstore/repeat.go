package bucketstore

import (
	"context"
	"fmt"
	"time"

	"gcsup/backoff"
	"gcsup/internal/storeretry"
	"gcsup/session"
)

// requestTimeout bounds one request, so that a retry can still renew the lease in time.
const requestTimeout = 10 * time.Second

// retry returns how the requests of a call are retried.
func (s *Store) retry(ctx context.Context) storeretry.Retry {
	r, _ := storeretry.Of(ctx)
	// A lease must be renewed before it expires, even after a few failures.
	longest := max(s.opts.TTL/8, time.Second)
	if r.Policy.Maximum > 0 {
		longest = min(longest, r.Policy.Maximum)
	}
	r.Policy.Maximum = min(longest, 32*time.Second)
	switch {
	case s.opts.RetryFor > 0:
		r.For = func() time.Duration { return s.opts.RetryFor }
	case r.For == nil:
		r.For = func() time.Duration { return defaultRetryFor }
	}
	if r.Waiting == nil {
		r.Waiting = func(backoff.Pause, error) {}
	}
	return r
}

// repeat makes an exchange until its reply is not a transient failure, or must not be retried any
// longer. The error is then one that names the Store.
func (s *Store) repeat(ctx context.Context, exchange func(context.Context) session.Reply) (session.Reply, error) {
	var failed error // of the last exchange; nil if none failed
	retry := s.retry(ctx)
	waiter := backoff.Waiter{Policy: retry.Policy}
	waiter.Before = func(p backoff.Pause) error {
		retry.Waiting(p, failed)
		return nil
	}
	defer waiter.Close()
	for refreshed := false; ; {
		r := s.once(ctx, exchange)
		switch {
		case r.Status >= 200 && r.Status < 300 && !r.Retryable():
			return r, nil // even if ctx is done
		case ctx.Err() != nil:
			return r, s.interrupted(ctx, failed)
		case r.Status == 401 && !refreshed:
			refreshed = true // the HTTP client refreshes the credentials
			continue
		case r.Status >= 300 && !r.FromService && r.Reached: // a proxy answered: retry
		case r.Status == 0 && !r.Retryable():
			return r, s.refusal(r)
		case !r.Retryable():
			return r, nil
		}
		failed = s.failure(r, nil)
		waiter.Budget.For = retry.For()
		if err := waiter.Wait(ctx, backoff.Failure{RetryAfter: r.RetryAfter}); err != nil {
			if ctx.Err() != nil {
				return r, s.interrupted(ctx, failed)
			}
			return r, s.failure(r, session.ErrRetriesExhausted)
		}
	}
}

// once makes an exchange with a time limit.
func (s *Store) once(ctx context.Context, exchange func(context.Context) session.Reply) session.Reply {
	limit := min(requestTimeout, s.opts.TTL)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, &timeoutError{limit, limit == s.opts.TTL})
	defer cancel()
	r := exchange(ctx)
	r.Reached = s.reached.Load()
	if r.Status != 0 && (r.FromService || r.Status < 300) {
		s.reached.Store(true)
	}
	return r
}

// timeoutError is the cause of the contexts of this package that time out.
type timeoutError struct {
	after time.Duration
	slow  bool // the lease cannot be acquired, or renewed in time
}

func (e *timeoutError) Error() string {
	text := fmt.Sprintf("no reply within %v", e.after)
	if e.slow {
		text += ": " + ErrSlow.Error()
	}
	return text
}

// Unwrap returns ErrStalled, because of which the failure is transient even if the service never
// answered before.
func (e *timeoutError) Unwrap() []error {
	if e.slow {
		return []error{session.ErrStalled, ErrSlow}
	}
	return []error{session.ErrStalled}
}

// interrupted returns the error of a call whose ctx is done. failed is the error of the last
// exchange before that, or nil. If the Store itself set the time limit, that is the error. The
// cause of any other ctx is only in the text: it may be the error of another upload, and wrap one
// that has a meaning here.
func (s *Store) interrupted(ctx context.Context, failed error) error {
	cause := context.Cause(ctx)
	limit, ours := cause.(*timeoutError)
	switch {
	case ours && failed != nil:
		return failed
	case ours:
		return s.about(limit)
	case failed != nil:
		return fmt.Errorf("%w: %v (before that: %v)", ctx.Err(), cause, failed)
	}
	return fmt.Errorf("%w: %v", ctx.Err(), cause)
}

// refusal returns the error for a reply that reports a permanent failure.
func (s *Store) refusal(r session.Reply) error {
	kind := r.Refusal().Kind
	if r.Status == 404 {
		kind = session.ErrNotFound
	}
	return s.failure(r, kind)
}

// failure returns an error of the given kind for a reply.
func (s *Store) failure(r session.Reply, kind error) error {
	err := r.Refusal()
	err.Kind = kind
	return s.about(err)
}
