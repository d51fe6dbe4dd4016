package upload

import (
	"context"
	"errors"
	"fmt"

	"gcsup/session"
	"gcsup/session/state"
	"gcsup/upload/internal/engine"
)

// Cancel ends the saved upload with that ID: the service drops its bytes, and the
// store deletes it. It is for uploads that will not be resumed. A session that is not
// canceled costs nothing and expires after a week. Like File, Cancel waits for a
// lease and delivers Held events. The error wraps [state.ErrNoToken] if there is no
// such upload.
//
// If a call of this Uploader runs the upload, as described for [Uploader.Pause], Cancel
// interrupts it first. That call returns an [*InterruptedError] that wraps
// [session.ErrCanceled], and its upload does not count as resumable. If Cancel then fails,
// for example because the service is down, the upload is still saved.
func (u *Uploader) Cancel(ctx context.Context, id string) error {
	j := u.newJob(ctx, Spec{}, u.newBudget())
	err := j.cancelSaved(ctx, id)
	j.requests.Retry.Close()
	_, err = j.conclusion(ctx, j.result.snapshot(&j.progress), err)
	return err
}

// cancelSaved is Cancel, without its last event.
func (j *job) cancelSaved(ctx context.Context, id string) error {
	ctx = j.storeContext(ctx)
	var token *state.Token
	var damaged error
	id, err := j.u.findSaved(ctx, id)
	if err == nil {
		j.identify(id, j.spec)
		err = j.u.running.Stop(ctx, id, &engine.Stopped{By: session.ErrCanceled})
	}
	if err == nil {
		token, damaged, err = j.openJournal(ctx, state.Token{ID: id}, nil)
	}
	if err != nil {
		return fmt.Errorf("cancel: %w", err)
	}
	defer j.journal.Close()
	switch {
	case damaged != nil: // it was set aside, and the session URI is unknown
		j.warnOfLostParts(id, "BUCKET")
		return nil
	case token == nil:
		return fmt.Errorf("cancel: %w: %s", state.ErrNoToken, id)
	}
	j.identify(id, token.Spec)
	if token.Parts != nil {
		return j.cancelParts(ctx, token)
	}
	return j.cancel(ctx, token, withSpool(ctx, token, j.journal.Discard))
}

// cancel ends the session of token, and calls discard if the session no longer
// exists.
func (j *job) cancel(ctx context.Context, token *state.Token, discard func() error) error {
	if err := j.adopt(token); err != nil {
		err = fmt.Errorf("cancel: %w", err)
		if token.Endpoint == j.u.client.Endpoint() {
			// Nothing can be sent to such a session, so there is nothing to keep.
			err = errors.Join(err, discard())
		}
		return err
	}
	if token.URI.IsZero() {
		return discard() // a stream whose session was not started
	}
	a, err := j.requests.Ask(ctx, session.Request{Known: true}, func(ctx context.Context) session.Reply { return j.wire().Cancel(ctx, token.URI) })
	switch {
	case engine.Refusal(err):
		return err
	case err != nil:
		return fmt.Errorf("cancel: %w", err)
	case a.Object != nil:
		j.events.post(Event{Kind: Warning, Cause: "the upload was finished already; the object is at " + token.Spec.URL()})
	}
	return discard()
}
