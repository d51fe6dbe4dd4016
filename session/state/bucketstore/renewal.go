package bucketstore

import (
	"context"
	"fmt"
	"time"

	"gcsup/backoff"
)

// renew writes the object again if the lease has expired, and returns the context of current.
// It tries for at most one TTL.
func (l *lease) renew(ctx context.Context) (valid context.Context, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, l.store.opts.TTL, &timeoutError{l.store.opts.TTL, true})
	defer cancel()
	free, err := l.object.own(ctx)
	if err == nil {
		defer free()
		if valid, err = l.validity.current(); valid == nil && err == nil {
			if err = l.object.write(ctx, l.object.content); err == nil {
				valid, err = l.validity.current()
			}
		}
	}
	if valid == nil && err == nil {
		err = ErrSlow // the reply arrived after the new end of the lease
	}
	if err != nil && l.validity.ended() == nil {
		err = fmt.Errorf("%w and cannot be renewed: %w", errExpired, err)
	}
	return valid, err
}

// keep renews the lease until it is released or lost, or ctx is done.
func (l *lease) keep(ctx context.Context) {
	defer close(l.kept)
	waiter := backoff.Waiter{Policy: l.store.retry(context.Background()).Policy, Budget: backoff.Budget{For: 365 * 24 * time.Hour}}
	defer waiter.Close()
	limit := l.validity.part(1) + time.Second
	for {
		if !l.validity.due(ctx) {
			return
		}
		request, cancel := context.WithTimeoutCause(l.validity.alive, limit, &timeoutError{limit, true})
		err := l.refresh(request)
		cancel()
		switch {
		case err == nil:
			waiter.Progress()
		case l.validity.ended() != nil:
			return
		default:
			l.validity.fail(err)
			if waiter.Wait(l.validity.alive, backoff.Failure{}) != nil {
				return
			}
		}
	}
}

// refresh renews the lease if it is due.
func (l *lease) refresh(ctx context.Context) error {
	free, err := l.object.own(ctx)
	if err != nil {
		return err
	}
	defer free()
	if left, exists := l.validity.untilRenewal(); !exists || left > 0 {
		return nil
	}
	return l.object.write(ctx, l.object.content)
}
