package saved

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"gcsup/internal/grace"
	"gcsup/session/state"
)

// leasePoll is how often acquire checks whether the holder of a lease is alive.
const leasePoll = 10 * time.Second

// acquire returns the lease of a saved upload. If another process holds it and may have
// died, acquire waits until the lease expires. If the holder renews it meanwhile, it is
// alive, and the error wraps [state.ErrInUse]. acquire calls waiting before each wait.
func acquire(ctx context.Context, store state.Store, id string, waiting func(*state.HeldError)) (state.Lease, error) {
	var first *state.HeldError
	for {
		lease, err := state.Acquire(ctx, store, id)
		held, ok := errors.AsType[*state.HeldError](err)
		if !ok || held.Left == 0 { // a lock, which ends with its process
			return lease, err
		}
		first = cmp.Or(first, held)
		if held.Renewal != first.Renewal {
			return nil, err
		}
		waiting(held)
		select {
		case <-time.After(min(held.Left, leasePoll)):
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %v", ctx.Err(), context.Cause(ctx))
		}
	}
}

// Release releases a lease without saving anything. If that fails, or takes longer than
// [grace.Store], the lease expires.
func Release(ctx context.Context, lease state.Lease) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace.Store)
	defer cancel()
	_ = lease.Release(ctx, nil)
}

// Delete deletes the saved upload of a lease, even if ctx was just canceled.
func Delete(ctx context.Context, lease state.Lease) error {
	ctx, cancel := Lingering(ctx)
	defer cancel()
	return lease.Delete(ctx)
}

// Lingering returns a context that outlives ctx a little: state can still be
// saved or deleted after cancellation.
func Lingering(ctx context.Context) (context.Context, context.CancelFunc) {
	return Outliving(ctx, grace.Store)
}

// Outliving returns a context that ends some time after ctx.
func Outliving(ctx context.Context, by time.Duration) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(by, cancel) })
	return longer, func() {
		stop()
		cancel()
	}
}
