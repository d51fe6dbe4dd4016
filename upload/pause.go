package upload

import (
	"context"
	"fmt"

	"gcsup/session/state"
	"gcsup/upload/internal/engine"
	"gcsup/upload/internal/saved"
)

// Pause interrupts the upload with an ID that a call of this Uploader makes, or of one
// that [Uploader.With] or a batch derived from it. It waits until the upload is saved and
// its lease is released. The same call, or Resume, continues the upload. Pause sends no
// request to the service.
//
// The call that was interrupted returns an [*InterruptedError] that wraps [ErrPaused].
//
// If no call of this Uploader runs the upload, and it is saved, Pause does nothing. The
// error wraps [state.ErrInUse] if another Uploader or process has the upload and the
// store is a [state.LockChecker]. It wraps [state.ErrNoToken] if the upload is not
// saved: it was finished, or was interrupted before it had a session.
//
// If ctx is done, Pause does not wait any longer, for example for a file that hangs. The
// upload is interrupted nevertheless.
func (u *Uploader) Pause(ctx context.Context, id string) error {
	id, err := u.findSaved(ctx, id)
	if err == nil {
		err = u.running.Stop(ctx, id, &engine.Stopped{By: ErrPaused})
	}
	if err == nil {
		e := saved.Load(ctx, u.opts.Store, id)
		if err = e.Err; e.InUse {
			err = state.ErrInUse
		}
	}
	if err != nil {
		return fmt.Errorf("pause: %w", err)
	}
	return nil
}
