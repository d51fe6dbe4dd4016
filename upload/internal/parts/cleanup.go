package parts

import (
	"context"

	"gcsup/internal/grace"
	"gcsup/upload/internal/engine"
	"gcsup/upload/internal/saved"
)

// cleaning calls clean, which removes what the service stores, with a context that outlives
// ctx, and ends when the lease is lost: the other process then finishes the work.
func cleaning(ctx context.Context, u *engine.Uplink, clean func(context.Context) error) error {
	ctx, end := saved.Outliving(ctx, grace.Requests)
	defer end()
	if u.Permit == nil {
		return clean(ctx)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	lost := u.Permit.Context()
	defer context.AfterFunc(lost, func() { cancel(context.Cause(lost)) })()
	return clean(ctx)
}

// abandoning is cleaning for an upload that will not be resumed. If clean fails after the lease
// was lost, the error is that of the lease.
func abandoning(ctx context.Context, u *engine.Uplink, clean func(context.Context) error) error {
	err := cleaning(ctx, u, clean)
	if lease := u.Permit; err != nil && lease != nil {
		if lost := context.Cause(lease.Context()); lost != nil {
			return lost
		}
	}
	return err
}
