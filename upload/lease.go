package upload

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gcsup/session/state"
)

// leasePoll is how often acquire checks whether the holder of a lease is alive.
const leasePoll = 10 * time.Second

// acquire returns the lease of a saved upload. If another process holds it and may have
// died, acquire waits until the lease expires. If the holder renews it meanwhile, it is
// alive, and the error wraps [state.ErrInUse]. acquire calls waiting, if it is not nil,
// before each wait.
func acquire(ctx context.Context, store state.Store, id string, waiting func(*state.HeldError)) (state.Lease, error) {
	var first *state.HeldError
	for {
		lease, err := state.Acquire(ctx, store, id)
		held, ok := errors.AsType[*state.HeldError](err)
		if !ok || held.Left == 0 { // a lock, which ends with its process
			return lease, err
		}
		if first == nil {
			first = held
		}
		if held.Renewal != first.Renewal {
			return nil, err
		}
		if waiting != nil {
			waiting(held)
		}
		if err := sleep(ctx, min(held.Left, leasePoll)); err != nil {
			return nil, err
		}
	}
}

// sleep waits for d. It returns the error of ctx if that ends first, with the cause in
// its text.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: %v", ctx.Err(), context.Cause(ctx))
	}
}

// release releases a lease without saving anything. If that fails, or takes longer than
// linger, the lease expires.
func release(ctx context.Context, lease state.Lease) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), linger)
	defer cancel()
	_ = lease.Release(ctx, nil)
}
