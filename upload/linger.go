package upload

import (
	"context"
	"time"
)

// abandonAfter is how long a canceled upload is waited for. What it does then
// takes milliseconds, unless a file hangs, or requests that take up to [engine.Grace].
const abandonAfter = 2 * time.Second

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
