package upload

import (
	"context"
	"time"
)

// linger is how long the store may take after the upload was cancelled.
const linger = 5 * time.Second

// abandonAfter is how long a cancelled upload is waited for. What it does then
// takes milliseconds, unless a file hangs.
const abandonAfter = 2 * time.Second

// abandonGrace bounds the requests after an upload was cancelled, so that the call can report
// their outcome before it returns.
const abandonGrace = abandonAfter * 3 / 4

// lingering returns a context that outlives ctx a little: state can still be
// saved or deleted after cancellation.
func lingering(ctx context.Context) (context.Context, context.CancelFunc) {
	return outliving(ctx, linger)
}

// outliving returns a context that ends some time after ctx.
func outliving(ctx context.Context, by time.Duration) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(by, cancel) })
	return longer, func() {
		stop()
		cancel()
	}
}

// awaitDone waits until done is closed. Once ctx is done, it waits for grace only, and
// returns false if that is not enough.
func awaitDone(ctx context.Context, done <-chan struct{}, grace time.Duration) bool {
	select {
	case <-done:
		return true
	case <-ctx.Done():
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}
