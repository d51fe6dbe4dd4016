package state

import (
	"context"
	"time"

	"gcsup/backoff"
)

// StoreRetry describes how a [Store] that sends requests over a network retries them during a
// call. Package upload adds one to the context of each of its calls, so that the Store obeys
// the options of the upload, and the user learns why the upload waits. A Store that sends no
// requests ignores it.
type StoreRetry struct {
	// Policy gives the length of each wait. A Store may wait less, to renew a lease in time.
	Policy backoff.Policy

	// For returns how long a request that fails is retried. The Store calls it after each
	// failure, because the bytes at stake may grow. nil means the default of the Store.
	For func() time.Duration

	// Waiting, if not nil, is called before each wait, with the error of the request. It may be
	// called from any goroutine.
	Waiting func(wait backoff.Pause, err error)
}

type storeRetryKey struct{}

// WithStoreRetry returns a context for calls of a [Store] whose requests are retried as r
// describes.
func WithStoreRetry(ctx context.Context, r StoreRetry) context.Context {
	return context.WithValue(ctx, storeRetryKey{}, r)
}

// StoreRetryOf returns the StoreRetry of a context. ok is false if it has none.
func StoreRetryOf(ctx context.Context) (r StoreRetry, ok bool) {
	r, ok = ctx.Value(storeRetryKey{}).(StoreRetry)
	return r, ok
}
