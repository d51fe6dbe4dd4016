package upload

import (
	"context"
	"fmt"

	"gcsup/session"
	"gcsup/session/state"
	"gcsup/upload/internal/batch"
	"gcsup/upload/internal/engine"
)

// SessionState is the state of the session of a saved upload.
type SessionState int

// The states of a session.
const (
	SessionUnknown  SessionState = iota // the service was not asked, or did not answer
	SessionOpen                         // the upload can be resumed
	SessionFinished                     // the object was created
	SessionGone                         // the service no longer has the session
	SessionCanceled                     // a client canceled the session
)

var sessionStates = [...]string{
	SessionUnknown: "unknown", SessionOpen: "open", SessionFinished: "finished", SessionGone: "gone", SessionCanceled: "canceled",
}

// String returns the name of s in lower case, such as "open".
func (s SessionState) String() string { return nameOf(int(s), sessionStates[:], "SessionState") }

// Holding describes what the service stores of a saved upload.
type Holding struct {
	State  SessionState
	Stored int64           // SessionOpen: bytes that are durable at the service
	Object *session.Object // SessionFinished: the object that the upload created; otherwise nil
}

// Query requests the state of the saved upload with an ID from the service, see
// [Uploader.Saved]. It changes nothing at the service. It reads the source only for parts of a
// multipart upload that were stored after the last save: like a resume, it compares them with the
// source. Without the source, or if it has changed, such parts do not count.
//
// A session counts as gone only after two equal answers of the service, and as
// canceled only after its status 499. After the same answers, an upload would start
// over. Query retries failed requests like an upload.
//
// A session must not have two requests at a time. If another process works on the
// upload, the error wraps [state.ErrInUse]. [SavedUpload.Committed] has what that
// process last saved. The error wraps [state.ErrNoToken] if there is no such upload,
// and [session.ErrURIMismatch] if it was started at another endpoint.
func (u *Uploader) Query(ctx context.Context, id string) (Holding, error) {
	if _, err := u.savedStore(); err != nil {
		return Holding{}, fmt.Errorf("query: %w", err)
	}
	ctx, done := storeCall(ctx, u)
	defer done()
	var holding Holding
	var err error
	answered := make(chan struct{})
	u.goroutines.Run(func() { // the source may be at a file server that is away
		defer close(answered)
		err = inspect(ctx, u, id, u.newBudget(), func(s *savedCall, _ state.Lease) (err error) {
			defer s.openUnchanged()()
			holding, err = s.query(ctx)
			return err
		})
	})
	if !batch.Await(ctx, answered, batch.AbandonAfter) {
		return Holding{}, fmt.Errorf("query: %w: the source or the store does not answer", context.Cause(ctx))
	}
	return holding, err
}

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
	c := newCall(ctx, u, Spec{}, u.newBudget())
	err := cancelSaved(ctx, c, id)
	c.requests.Retry.Close()
	_, err = c.conclusion(ctx, c.result.snapshot(&c.progress), err)
	return err
}

// cancelSaved is Cancel, without its last event.
func cancelSaved(ctx context.Context, c *call, id string) error {
	ctx = c.storeContext(ctx)
	var token *state.Token
	var damaged error
	id, err := c.u.findSaved(ctx, id)
	if err == nil {
		c.identify(id, c.spec)
		err = c.u.running.Stop(ctx, id, &engine.Stopped{By: session.ErrCanceled})
	}
	if err == nil {
		token, damaged, err = c.openJournal(ctx, state.Token{ID: id}, nil)
	}
	if err != nil {
		return fmt.Errorf("cancel: %w", err)
	}
	defer c.journal.Close()
	switch {
	case damaged != nil: // it was set aside, and the session URI is unknown
		warnOfLostParts(c.events, c.u, id, "BUCKET")
		return nil
	case token == nil:
		return fmt.Errorf("cancel: %w: %s", state.ErrNoToken, id)
	}
	c.identify(id, token.Spec)
	s := &savedCall{call: c, token: token}
	if token.Parts != nil {
		return s.cancelParts(ctx)
	}
	return s.cancel(ctx, withSpool(ctx, token, c.journal.Discard))
}
