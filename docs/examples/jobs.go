package examples

import (
	"context"
	"errors"
	"fmt"

	"gcsup/session/state"
	"gcsup/upload"
)

// Recover continues the uploads of earlier processes. Call it when a program starts.
// Then it deletes those that cannot be continued, because the service has dropped
// them, or their file is gone. It returns the numbers of finished and deleted
// uploads. Several processes may call it at the same time, because each upload has a
// lock.
func Recover(ctx context.Context, up *upload.Uploader) (finished, deleted int, err error) {
	var failed []error
	for saved, err := range up.Saved(ctx) {
		if err == nil {
			_, err = up.Resume(ctx, saved.ID)
		}
		switch {
		case err == nil:
			finished++
		case errors.Is(err, state.ErrInUse), errors.Is(err, state.ErrNotFound):
			// Another process continues it, or has finished it.
		default:
			failed = append(failed, fmt.Errorf("upload %s of %s: %w", saved.ID, saved.Source(), err))
		}
	}
	for pruned, err := range up.Prune(ctx, &upload.PruneOptions{MissingSource: true}) {
		switch {
		case pruned.Deleted:
			deleted++
		case err != nil && !errors.Is(err, state.ErrInUse):
			failed = append(failed, fmt.Errorf("prune %s: %w", pruned.ID, err))
		}
	}
	return finished, deleted, errors.Join(failed...)
}
