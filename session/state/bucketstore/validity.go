package bucketstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Times since the last write was sent, in eighths of the TTL.
const (
	saveAfter  = 4 // minimum time between saves that only shorten a resume
	renewAfter = 5 // the lease is renewed unless a save renewed it
	validFor   = 7 // no request begins later; the last eighth allows for clocks of different speed
)

var (
	errExpired  = errors.New("the lease of the upload expired")
	errReleased = errors.New("the lease of the upload was released")
)

// validity is the time for which a lease may be used. It depends only on when writes of the
// object were sent, by the clocks of this machine.
type validity struct {
	ttl   time.Duration
	clock func() moment

	lost  context.Context // ends when another process acquired the lease
	lose  context.CancelCauseFunc
	alive context.Context // ends with Release
	end   context.CancelFunc

	mu        sync.Mutex
	backed    bool            // the object was written, and no request to delete it was sent since
	renewed   moment          // when the last successful write was sent; valid if backed is set
	saved     moment          // when the last save was sent, or the write that acquired the lease
	valid     context.Context // ends when the lease expires; replaced by a later renewal
	invalid   context.CancelCauseFunc
	writing   *moment // when a write that is under way was begun; nil if there is none
	trouble   error   // why the lease was not renewed in time; nil if it was, or was not tried
	expiry    *time.Timer
	listening chan struct{} // receives a value when the lease is renewed, for due
}

// newValidity returns the validity of a lease that is not acquired.
func newValidity(ttl time.Duration, clock func() moment) *validity {
	v := &validity{ttl: ttl, clock: clock, listening: make(chan struct{}, 1)}
	v.lost, v.lose = context.WithCancelCause(context.Background())
	v.alive, v.end = context.WithCancel(context.Background())
	v.valid, v.invalid = context.WithCancelCause(context.Background())
	v.invalid(errExpired)
	return v
}

// part returns n eighths of the TTL.
func (v *validity) part(n time.Duration) time.Duration { return v.ttl * n / 8 }

// ended returns why the lease can no longer be used, or nil.
func (v *validity) ended() error {
	if err := context.Cause(v.lost); err != nil {
		return err
	}
	if v.alive.Err() != nil {
		return errReleased
	}
	return nil
}

// current returns the context that ends when the lease expires, or nil if it has expired. The
// error is that of ended.
func (v *validity) current() (context.Context, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if err := v.ended(); err != nil || v.left(validFor) <= 0 {
		return nil, err
	}
	return v.valid, nil
}

// left returns the time until n eighths of the TTL after the last renewal, or 0 if there is no
// object. v.mu is held.
func (v *validity) left(n time.Duration) time.Duration {
	if !v.backed {
		return 0
	}
	return v.part(n) - v.clock().since(v.renewed)
}

// renew records a successful write, which was sent at the moment sent. first is true
// if the write acquired the lease, or acquired it again.
func (v *validity) renew(sent moment) (first bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.ended() != nil {
		return false
	}
	if first = !v.backed; first {
		v.saved = sent
	}
	v.backed, v.renewed, v.trouble = true, sent, nil
	left := v.left(validFor)
	if left <= 0 {
		return first // the reply took too long
	}
	if v.valid.Err() != nil {
		v.valid, v.invalid = context.WithCancelCause(context.Background())
	}
	if v.expiry == nil {
		v.expiry = time.AfterFunc(v.nap(left), v.expire)
	} else {
		v.expiry.Reset(v.nap(left))
	}
	select {
	case v.listening <- struct{}{}:
	default:
	}
	return first
}

// save records that the last write was a save.
func (v *validity) save() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.saved = v.renewed
}

// saveInterval returns half of the TTL, plus the time from the last save to the last renewal:
// every write delays the next save.
func (v *validity) saveInterval() time.Duration {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.part(saveAfter) + v.renewed.since(v.saved)
}

// expire ends the requests under way if the lease has expired.
func (v *validity) expire() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if left := v.left(validFor); left > 0 && v.ended() == nil {
		v.expiry.Reset(v.nap(left))
		return
	}
	v.invalid(v.expired())
}

// expired returns the error of a request that ends because the lease has expired. v.mu is held.
func (v *validity) expired() error {
	const late = validFor - renewAfter // the time that a renewal may take
	switch {
	case v.trouble != nil:
		return fmt.Errorf("%w: %w", errExpired, v.trouble)
	case v.writing != nil && v.clock().since(*v.writing) >= v.part(late):
		return fmt.Errorf("%w: %w", errExpired, ErrSlow)
	}
	return errExpired
}

// fail records that a renewal failed.
func (v *validity) fail(err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.trouble = err
}

// write records that a write is under way until end is called.
func (v *validity) write() (end func()) {
	now := v.clock()
	v.mu.Lock()
	defer v.mu.Unlock()
	v.writing = &now
	return func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.writing = nil
	}
}

// nap returns how long to wait before the clocks are read again, at most left. It is
// short, because timers do not run while the machine is suspended.
func (v *validity) nap(left time.Duration) time.Duration { return min(left, v.part(1)) }

// unback records that the object may be deleted. Another process can then acquire the lease.
func (v *validity) unback() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.backed = false
	v.invalid(errExpired)
}

// exists reports whether the object was written, and not deleted since.
func (v *validity) exists() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.backed
}

// stolen records that another process has the lease.
func (v *validity) stolen(err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.alive.Err() == nil {
		v.lose(err)
		v.invalid(err)
	}
}

// finish ends the requests under way and the renewals. It returns false if an earlier call did.
func (v *validity) finish() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.alive.Err() != nil {
		return false
	}
	v.end()
	v.invalid(errReleased)
	if v.expiry != nil {
		v.expiry.Stop()
	}
	return true
}

// untilRenewal returns the time until the lease must be renewed, and whether there is an object
// to renew.
func (v *validity) untilRenewal() (left time.Duration, exists bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.left(renewAfter), v.backed
}

// due waits until the lease must be renewed and returns true, or returns false when
// the lease is released or lost, or ctx is done.
func (v *validity) due(ctx context.Context) bool {
	for ctx.Err() == nil {
		left, exists := v.untilRenewal()
		if exists && left <= 0 {
			return true
		}
		timer := time.NewTimer(max(v.nap(left), 0))
		if !exists {
			timer.Stop() // wait until the object is written again
		}
		select {
		case <-timer.C:
		case <-v.listening:
			timer.Stop()
		case <-v.lost.Done():
			timer.Stop()
			return false
		case <-v.alive.Done():
			timer.Stop()
			return false
		case <-ctx.Done():
			timer.Stop()
		}
	}
	return false
}
