// Package storeretry tells a store of saved uploads, which sends requests over a network, how the
// upload that waits for it wants them to be retried.
package storeretry

import (
	"context"
	"time"

	"gcsup/backoff"
)

// Retry describes how a store retries its requests during a call. Package upload adds one to the
// context of each of its calls, so that the store obeys the options of the upload, and the user
// learns why the upload waits.
type Retry struct {
	// Policy gives the length of each wait. A store may wait less, to renew a lease in time.
	Policy backoff.Policy

	// For returns how long a request that fails is retried. The store calls it after each
	// failure, because the bytes at stake may grow. nil means the default of the store.
	For func() time.Duration

	// Waiting, if not nil, is called before each wait, with the error of the request. It may be
	// called from any goroutine.
	Waiting func(wait backoff.Pause, err error)
}

type key struct{}

// With returns a context for calls of a store whose requests are retried as r describes.
func With(ctx context.Context, r Retry) context.Context { return context.WithValue(ctx, key{}, r) }

// Of returns the Retry of a context. ok is false if it has none.
func Of(ctx context.Context) (r Retry, ok bool) {
	r, ok = ctx.Value(key{}).(Retry)
	return r, ok
}
