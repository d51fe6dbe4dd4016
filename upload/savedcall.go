package upload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"gcsup/internal/decide"
	"gcsup/internal/sourcefile"
	"gcsup/session"
	"gcsup/session/state"
	"gcsup/upload/internal/engine"
	"gcsup/upload/internal/saved"
	"gcsup/upload/internal/source"
)

// savedCall is a call that works on a saved upload without sending bytes: it queries it, or removes it.
type savedCall struct {
	*call
	doc  *state.Upload
	file *source.File // nil unless its parts may have to be compared with the source
}

// inspect calls do with a saved upload and its lease.
func inspect(ctx context.Context, u *Uploader, id string, b *engine.SharedBudget, do func(*savedCall, state.Lease) error) error {
	doc, lease, err := saved.Lock(ctx, u.opts.Store, id)
	if err != nil {
		return err
	}
	defer saved.Release(ctx, lease)
	c := newCall(ctx, u, doc.Spec, b)
	defer c.events.close(ctx, nil)
	defer c.requests.Retry.Close()
	c.uplink.Permit = lease
	spec := doc.Spec
	if with, err := u.opts.unlock(spec, session.EncryptionKey{}); err == nil {
		spec = with // otherwise query without the key, which the service may accept
	}
	c.identify(doc.ID, spec)
	c.journal.Adopt(doc)
	c.result.label.set(func(n *names) { n.upload = 0 }) // an inspection has no terminal event
	return do(&savedCall{call: c, doc: doc}, lease)
}

// openUnchanged opens the source of an upload if its parts may have to be compared with it. The call
// has no source if it does not exist or has changed. The caller must call close.
func (s *savedCall) openUnchanged() (close func()) {
	none := func() {}
	p := s.doc.Parts
	if p == nil || p.Upload.IsZero() || s.doc.SourcePath == "" || s.doc.Gzip != nil || !slices.ContainsFunc(p.List, func(part state.Part) bool { return !part.Finished() }) {
		return none
	}
	src, err := sourcefile.Open(s.doc.SourcePath)
	if err != nil {
		return none
	}
	file, err := source.NewFile(src, s.doc.SourcePath, func(int64, int64, int64) {})
	if err == nil {
		_, err = s.journal.SameSource(s.doc, file.Total(), file.Since)
	}
	if err != nil {
		_ = src.Close()
		return none
	}
	s.file = file
	return file.Close
}

// query requests the state of the upload from the service. The caller must hold its lease. If the service has nothing of
// parts, the state is SessionGone.
func (s *savedCall) query(ctx context.Context) (Holding, error) {
	if err := s.usable(); err != nil {
		return Holding{}, err
	}
	if s.doc.Parts != nil {
		held, made, err := newPartedFile(s.call, s.file, false).stored(ctx)
		if made != nil || err != nil {
			return Holding{State: SessionFinished, Object: made}, err
		}
		return holdingOf(held), nil
	}
	if s.doc.URI.IsZero() {
		return Holding{State: SessionOpen}, nil // a stream whose session was not started
	}
	held, err := engine.Inquire(ctx, s.wire(), s.doc.URI, false)
	return holdingOf(held), err
}

// holdingOf returns the Holding of what the service holds.
func holdingOf(h engine.Held) Holding { return Holding{heldStates[h.State], h.Committed, h.Object} }

var heldStates = [...]SessionState{
	engine.HeldOpen: SessionOpen, engine.HeldFinished: SessionFinished, engine.HeldGone: SessionGone, engine.HeldCanceled: SessionCanceled,
}

// foreign returns an error if a saved upload was started at another endpoint.
func foreign(u *Uploader, id, endpoint string) error {
	if endpoint == u.client.Endpoint() {
		return nil
	}
	return fmt.Errorf("upload %s was started at %s: %w", id, endpoint, session.ErrURIMismatch)
}

// usable returns an error if the session may not be used with this endpoint.
func (s *savedCall) usable() error {
	err := state.Adopt(s.u.client, s.doc)
	if err == nil {
		return nil
	}
	return cmp.Or(foreign(s.u, s.doc.ID, s.doc.Endpoint), err)
}

// holds reports whether o, which a session created, is still at the destination.
func (s *savedCall) holds(ctx context.Context, o *session.Object) (bool, error) {
	a, err := s.requests.Ask(ctx, decide.Request{}, func(ctx context.Context) session.Reply { return engine.Bounded(ctx, s.wire().Stat) })
	if err != nil && !engine.Refusal(err) {
		return false, err
	}
	return a.Object != nil && o.Generation > 0 && a.Object.Generation == o.Generation, nil
}

// cancel ends the session, and calls discard if the session no longer exists.
func (s *savedCall) cancel(ctx context.Context, discard func() error) error {
	if err := s.usable(); err != nil {
		err = fmt.Errorf("cancel: %w", err)
		if s.doc.Endpoint == s.u.client.Endpoint() {
			// Nothing can be sent to such a session, so there is nothing to keep.
			err = errors.Join(err, discard())
		}
		return err
	}
	if s.doc.URI.IsZero() {
		return discard() // a stream whose session was not started
	}
	a, err := s.requests.Ask(ctx, decide.Request{Known: true}, func(ctx context.Context) session.Reply { return s.wire().Cancel(ctx, s.doc.URI) })
	switch {
	case engine.Refusal(err):
		return err
	case err != nil:
		return fmt.Errorf("cancel: %w", err)
	case a.Object != nil:
		s.events.post(Event{Kind: Warning, Cause: "the upload was finished already; the object is at " + s.doc.Spec.URL()})
	}
	return discard()
}

// removeParts removes everything that the service stores for an upload in parts.
func (s *savedCall) removeParts(ctx context.Context) error {
	return newPartedFile(s.call, s.file, false).remove(ctx)
}

// cancelParts removes everything that the service stores for an upload in parts, and deletes the saved upload.
func (s *savedCall) cancelParts(ctx context.Context) error {
	if err := s.usable(); err != nil {
		return fmt.Errorf("cancel: %w", err)
	}
	if err := s.removeParts(ctx); err != nil {
		return fmt.Errorf("cancel: %w", err)
	}
	return withSpool(ctx, s.doc, s.journal.Discard)()
}

// resumeRemoval removes what an upload in parts left that has ended. If its object was not
// made, it was canceled, and the error wraps ErrNotFound.
func (s *savedCall) resumeRemoval(ctx context.Context) error {
	holding, err := s.query(ctx)
	if err != nil {
		return err
	}
	if err := s.cancelParts(ctx); err != nil {
		return err
	}
	if holding.State != SessionFinished {
		return fmt.Errorf("%w: upload %s was canceled, and what it had left at the service is removed now", state.ErrNotFound, s.doc.ID)
	}
	s.result.update(func(r *Result) {
		if r.Object = holding.Object; s.u.removal.wanted {
			r.SourceKept = fmt.Errorf("%w: only the cleanup of the upload was left, and the source was not compared with the object: upload it again to remove it, and skip it if it is identical", session.ErrOutcomeUnknown)
		}
	})
	return nil
}
