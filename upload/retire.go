package upload

import (
	"context"
	"errors"
	"fmt"

	"gcsup/session"
	"gcsup/session/state"
	"gcsup/upload/internal/saved"
)

// abandonParts removes everything that the service stores for a saved upload, because the job
// starts over. What the service refuses to remove is saved under an ID of its own.
func abandonParts(ctx context.Context, j *job, token *state.Token) error {
	left := removeParts(ctx, j, token)
	if lost := j.journal.LeaseLost(); lost != nil && left != nil {
		return lost // another process may continue the upload
	}
	if left == nil || ctx.Err() != nil || errors.Is(left, session.ErrRetriesExhausted) {
		return left // in an outage the upload would fail, too
	}
	id, err := saved.Retire(ctx, j.u.opts.Store, token)
	if err != nil {
		return errors.Join(left, err)
	}
	j.result.update(func(r *Result) { r.Leftover = left })
	j.events.post(Event{Kind: Warning, Cause: fmt.Sprintf("%v (saved as %s, to be removed)", left, id), Err: left})
	return nil
}
