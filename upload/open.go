package upload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"time"

	"gcsup/chunk"
	"gcsup/session"
)

// maxObject is the service's limit: https://cloud.google.com/storage/quotas#objects.
const maxObject = 5 << 40

// uploadFile uploads a file, going on with an earlier session if there is one.
func (t *transfer) uploadFile(ctx context.Context, path string) error {
	if err := t.spec.Validate(); err != nil {
		return err
	}
	store := t.u.opts.Store
	src, err := t.open(path)
	if err != nil {
		return err
	}
	defer src.Close()
	if store == nil {
		return t.fresh(ctx, nil)
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	if t.res.ID, err = t.u.ID(path, t.spec); err != nil {
		return err
	}
	unlock, err := store.Lock(ctx, t.res.ID)
	if err != nil {
		return err
	}
	defer unlock()
	token, err := store.Load(ctx, t.res.ID)
	switch {
	case err == nil:
		return t.continueWith(ctx, token)
	case errors.Is(err, session.ErrDamaged):
		t.event(Event{Kind: Afresh, Cause: err.Error()})
	case !errors.Is(err, session.ErrNoToken):
		return err
	}
	return t.fresh(ctx, &session.Token{SourcePath: abs})
}

// uploadSaved goes on with a saved upload.
func (t *transfer) uploadSaved(ctx context.Context, id string) error {
	store := t.u.opts.Store
	if store == nil {
		return fmt.Errorf("resume: %w: there is no store", session.ErrNoToken)
	}
	t.res.ID = id
	unlock, err := store.Lock(ctx, id)
	if err != nil {
		return err
	}
	defer unlock()
	token, err := store.Load(ctx, id)
	if err != nil {
		return err
	}
	t.spec, t.res.Spec = token.Spec, token.Spec
	if token.Endpoint != t.u.client.Endpoint() {
		return fmt.Errorf("upload %s was begun at %s: %w", id, token.Endpoint, session.ErrForeignURI)
	}
	src, err := t.open(token.SourcePath)
	if err != nil {
		return err
	}
	defer src.Close()
	return t.continueWith(ctx, token)
}

// open opens the source, and notes what it is before a byte of it is read.
func (t *transfer) open(path string) (*chunk.Source, error) {
	src, err := chunk.Open(path)
	if err != nil {
		return nil, err
	}
	identity, err := src.Identity()
	switch {
	case err != nil:
	case identity.Size != src.Size():
		err = fmt.Errorf("%w: %s is being written to", session.ErrSourceChanged, path)
	case src.Size() > maxObject:
		err = fmt.Errorf("%w: %s has %d bytes, an object at most %d (5 TiB)", session.ErrInvalid, path, src.Size(), int64(maxObject))
	}
	if err != nil {
		_ = src.Close()
		return nil, err
	}
	t.file = &fileContent{
		src: src, identity: identity, sum: chunk.NewRunning(chunk.Checkpoint{}),
		reread: t.reread,
	}
	t.content = t.file
	t.state.Size, t.res.Size = src.Size(), src.Size()
	t.budget.AtStake = src.Size()
	return src, nil
}

// reread notes that bytes of the source were read only for their checksum. The
// step that reaches the end is not told of: something else follows at once.
func (t *transfer) reread(n, offset, end int64) {
	t.res.BytesReread += n
	if now := time.Now(); offset < end && now.Sub(t.reported) >= progressEvery {
		t.reported = now
		t.event(Event{Kind: Comparing, Compared: offset, ToCompare: end})
	}
}

// fresh uploads a file from byte 0. token, nil without a store, has the path.
func (t *transfer) fresh(ctx context.Context, token *session.Token) error {
	t.token = token
	if size := t.file.src.Size(); size <= smallLimit && (t.u.opts.ChunkSize == 0 || size <= t.u.opts.ChunkSize) {
		t.token = nil // nothing to resume
		if err := t.load(ctx); err != nil {
			return t.sourceFailed(ctx, err)
		}
	}
	return t.settle(ctx, t.run(ctx, session.Begin))
}

// continueWith goes on with a saved session, unless that is of no use: then it
// begins afresh, and says why.
func (t *transfer) continueWith(ctx context.Context, token *session.Token) error {
	if why := t.useless(token); why != "" {
		return t.afresh(ctx, token, why)
	}
	token = withoutUnsent(token)
	if err := t.sameSource(ctx, token); err != nil {
		if !errors.Is(err, session.ErrSourceChanged) {
			return err
		}
		if !t.u.opts.RestartChanged {
			return sourceError(err)
		}
		return t.afresh(ctx, token, err.Error())
	}
	t.token, t.saved, t.taken, t.uri = token, true, token, token.URI
	// Enough to check an object that turns out to be finished already.
	t.file.sum = chunk.NewRunning(token.Checkpoint(token.Source.Size))
	t.state.Committed, t.state.Sent, t.state.Restarts = token.Committed, token.HighWater, token.Restarts
	// The earlier process may have sent the last byte.
	t.state.MayExist = token.HighWater == token.Source.Size
	err := t.run(ctx, session.Query)
	if t.differs && t.u.opts.RestartChanged {
		// Only the server's checksum told.
		t.token, t.saved, t.taken, t.uri, t.agreed = nil, false, nil, session.URI{}, 0
		t.state, t.differs = session.State{Size: t.file.src.Size()}, false
		t.file.sum, t.sent = chunk.NewRunning(chunk.Checkpoint{}), 0
		t.res.Resumed, t.res.ResumedFrom = false, 0
		return t.afresh(ctx, token, err.Error())
	}
	return t.settle(ctx, err)
}

// afresh forgets a saved session, and says why, and uploads from byte 0.
func (t *transfer) afresh(ctx context.Context, token *session.Token, why string) error {
	t.event(Event{Kind: Afresh, Cause: why})
	if err := t.u.opts.Store.Delete(ctx, token.ID); err != nil {
		return err
	}
	return t.fresh(ctx, &session.Token{SourcePath: token.SourcePath})
}

// takeOver goes on from what the server holds of an earlier process's session.
// The checksum of that is known from a checkpoint and a short piece of the
// source that is read again.
func (t *transfer) takeOver(ctx context.Context) error {
	token, offset := t.taken, t.state.Committed
	t.taken = nil
	from, err := t.file.hash(ctx, token.Checkpoint(offset), offset)
	if err != nil {
		return t.sourceFailed(ctx, err)
	}
	t.file.sum = chunk.NewRunning(from)
	t.res.Resumed, t.res.ResumedFrom, t.sent = true, offset, offset
	t.event(Event{Kind: Resumed})
	return nil
}

// useless says why a saved session cannot be gone on with, "" if it can.
func (t *transfer) useless(token *session.Token) string {
	if err := t.u.client.Adopt(token); err != nil {
		return err.Error()
	}
	switch {
	case token.Endpoint != t.u.client.Endpoint():
		return "the earlier upload was to another endpoint"
	case !token.Spec.Equal(t.spec):
		return "the earlier upload was begun with other options"
	case !time.Now().Before(token.Expires()):
		return fmt.Sprintf("the earlier upload is older than a week (%s), and the service has dropped it", token.Created.Format(time.DateTime))
	}
	return ""
}

// sameSource checks that the file is the one that the session began with.
func (t *transfer) sameSource(ctx context.Context, token *session.Token) error {
	change := token.Source.Compare(t.file.identity)
	if imported(token) {
		t.file.copied = true
		if token.Source.Size == t.file.identity.Size {
			change = chunk.ChangeTimeOnly
		}
	}
	if change == chunk.Same && token.Source.ChangeTimeNS == 0 {
		// The platform has no change time to tell of an edit that put the
		// modification time back.
		change = chunk.ChangeTimeOnly
	}
	switch change {
	case chunk.Same:
		return nil
	case chunk.ChangeTimeOnly:
		// A chmod, or an edit that put the modification time back: the bytes
		// decide, as far as their checksum is known. The rest is compared at
		// the end, by the service.
		return t.file.compare(ctx, token.Checkpoints...)
	}
	return fmt.Errorf("%w: %s is not the file that the upload began with (its size, modification time or inode differs)", session.ErrSourceChanged, token.SourcePath)
}

// uploadStream uploads a reader.
func (t *transfer) uploadStream(ctx context.Context, r io.Reader) error {
	if err := t.spec.Validate(); err != nil {
		return err
	}
	stream, err := chunk.NewStream(r, t.u.opts.Window)
	if err != nil {
		return err
	}
	defer stream.Close()
	t.content = &streamContent{stream: stream}
	t.state.Size = -1
	return t.run(ctx, session.Begin)
}

// settle decides what becomes of the saved upload.
func (t *transfer) settle(ctx context.Context, err error) error {
	if !t.saved {
		return err
	}
	ctx, stop := lingering(ctx)
	defer stop()
	if err == nil || dead(err) || t.spec.NoClobber && errors.Is(err, session.ErrPrecondition) {
		if derr := t.u.opts.Store.Delete(ctx, t.token.ID); derr != nil {
			if err != nil {
				return errors.Join(err, derr)
			}
			t.event(Event{Kind: Warning, Cause: derr.Error()})
		}
		return err
	}
	t.res.Resumable = true
	if t.taken == nil && !errors.Is(err, session.ErrSourceChanged) {
		// What is known of the source and the server by now makes the resume
		// cheaper, and notices more; without it there is one all the same.
		// Not so of a source that changed: its checksums are not those of
		// what was sent.
		if serr := t.save(ctx, t.state.Sent); serr != nil {
			t.event(Event{Kind: Warning, Cause: serr.Error()})
		}
	}
	return err
}

// dead reports whether an error ends the session, so that the next run must
// begin with another. A precondition that was seen not to hold before the last
// byte was sent leaves the session as it is; with NoClobber there is nothing
// left to do with it all the same.
func dead(err error) bool {
	if e, ok := errors.AsType[*session.Error](err); ok && errors.Is(e, session.ErrPrecondition) {
		return true
	}
	for _, kind := range []error{
		session.ErrGone, session.ErrCancelled, session.ErrChecksum,
		session.ErrForeignWriter, session.ErrContradiction, session.ErrForeignURI,
	} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

// result completes the Result.
func (t *transfer) result(err error) (*Result, error) {
	t.res.Elapsed = time.Since(t.began)
	if t.res.Resumed || err != nil {
		t.u.opts.Logger.LogAttrs(context.Background(), slog.LevelInfo, "upload ended",
			slog.String("id", t.res.ID), slog.Int64("resumed_from", t.res.ResumedFrom), slog.Int64("committed", t.state.Committed), slog.Any("err", err))
	}
	res := t.res
	return &res, err
}
