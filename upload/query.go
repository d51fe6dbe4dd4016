package upload

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"gcsup/chunk"
	"gcsup/session"
	"gcsup/session/state"
	"gcsup/upload/internal/engine"
	"gcsup/upload/internal/saved"
	"gcsup/upload/internal/source"
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
	ctx, done := u.storeCall(ctx)
	defer done()
	var holding Holding
	var err error
	answered := make(chan struct{})
	u.goroutines.run(func() { // the source may be at a file server that is away
		defer close(answered)
		err = u.inspect(ctx, id, u.newBudget(), func(j *job, token *state.Token, _ state.Lease) (err error) {
			defer j.openUnchanged(token)()
			holding, err = j.queryHolding(ctx, token)
			return err
		})
	})
	if !awaitDone(ctx, answered, abandonAfter) {
		return Holding{}, fmt.Errorf("query: %w: the source or the store does not answer", context.Cause(ctx))
	}
	return holding, err
}

// openUnchanged opens the source of an upload if its parts may have to be compared with it. The job
// has no source if it does not exist or has changed. The caller must call close.
func (j *job) openUnchanged(token *state.Token) (close func()) {
	none := func() {}
	p := token.Parts
	if p == nil || p.Upload.IsZero() || token.SourcePath == "" || !slices.ContainsFunc(p.List, func(part state.Part) bool { return !part.Finished() }) {
		return none
	}
	src, err := chunk.Open(token.SourcePath)
	if err != nil {
		return none
	}
	file, err := source.NewFile(src, token.SourcePath, func(int64, int64, int64) {})
	if err == nil {
		_, err = j.journal.SameSource(token, file.Total(), file.Since)
	}
	if err != nil {
		_ = src.Close()
		return none
	}
	j.file = file
	return file.Close
}

// inspect calls do with a saved upload, its lease, and a job that queries it.
func (u *Uploader) inspect(ctx context.Context, id string, b *engine.Budget, do func(*job, *state.Token, state.Lease) error) error {
	token, lease, err := saved.Lock(ctx, u.opts.Store, id)
	if err != nil {
		return err
	}
	defer saved.Release(ctx, lease)
	j := u.newJob(ctx, token.Spec, b)
	defer j.events.close(ctx, nil)
	defer j.requests.Retry.Close()
	j.uplink.Permit = lease
	spec := token.Spec
	if with, err := j.unlock(spec, session.EncryptionKey{}); err == nil {
		spec = with // otherwise query without the key, which the service may accept
	}
	j.identify(token.ID, spec)
	j.journal.Adopt(token)
	j.result.label.set(func(n *names) { n.upload = 0 }) // an inspection has no terminal event
	return do(j, token, lease)
}

// queryHolding requests the state of the upload of token from the service. The caller must
// hold the lease of the upload.
func (j *job) queryHolding(ctx context.Context, token *state.Token) (Holding, error) {
	if err := j.adopt(token); err != nil {
		return Holding{}, err
	}
	if token.Parts != nil {
		return j.queryParts(ctx)
	}
	if token.URI.IsZero() {
		return Holding{State: SessionOpen}, nil // a stream whose session was not started
	}
	held, err := engine.Inquire(ctx, j.wire(), token.URI, false)
	return holdingOf(held), err
}

// holdingOf returns the Holding of what the service holds.
func holdingOf(h engine.Held) Holding { return Holding{heldStates[h.State], h.Committed, h.Object} }

var heldStates = [...]SessionState{
	engine.HeldOpen: SessionOpen, engine.HeldFinished: SessionFinished, engine.HeldGone: SessionGone, engine.HeldCanceled: SessionCanceled,
}

// foreign returns an error if a saved upload was started at another endpoint.
func (u *Uploader) foreign(id, endpoint string) error {
	if endpoint == u.client.Endpoint() {
		return nil
	}
	return fmt.Errorf("upload %s was started at %s: %w", id, endpoint, session.ErrURIMismatch)
}

// adopt checks that the session of token may be used with this endpoint.
func (j *job) adopt(token *state.Token) error {
	err := state.Adopt(j.u.client, token)
	if err == nil {
		return nil
	}
	return cmp.Or(j.u.foreign(token.ID, token.Endpoint), err)
}

// holds reports whether o, which a session created, is still at the destination.
func (j *job) holds(ctx context.Context, o *session.Object) (bool, error) {
	a, err := j.requests.Ask(ctx, session.Request{}, func(ctx context.Context) session.Reply { return engine.Bounded(ctx, j.wire().Stat) })
	if err != nil && !engine.Refusal(err) {
		return false, err
	}
	return a.Object != nil && o.Generation > 0 && a.Object.Generation == o.Generation, nil
}
