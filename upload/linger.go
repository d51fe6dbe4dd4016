package upload

import (
	"context"
	"time"
)

// abandonAfter is how long a cancelled upload is waited for. What it does then
// takes milliseconds, unless a file hangs.
const abandonAfter = 2 * time.Second

// abandonGrace bounds the requests after an upload was cancelled, so that the call can report
// their outcome before it returns.
const abandonGrace = abandonAfter * 3 / 4

// awaitDone waits until done is closed. Once ctx is done, it waits for grace only, and
// returns false if that is not enough.
func awaitDone(ctx context.Context, done <-chan struct{}, grace time.Duration) bool {
	select {
	case <-done:
		return true
	case <-ctx.Done():
	}
	select {
	case <-done:
		return true
	case <-time.After(grace):
		return false
	}
}
