package upload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"gcsup/chunk"
	"gcsup/session"
	"gcsup/session/state"
)

// TakeOver gives a saved upload another source: a copy of its source at path. Use it
// if the file was moved, restored from a backup, or is on a file system that is now
// mounted elsewhere. It returns the ID for [Uploader.Resume]. [Uploader.File] with
// path finds the upload too. TakeOver sends nothing.
//
// As after [Uploader.Import], the bytes are compared: TakeOver compares the size, and
// the next resume compares the bytes that were sent before it sends others. path may
// also be the old path, if the file there was replaced by a copy.
//
// An ID depends on the path, so the upload usually gets a new one. The old ID is then
// free. If the process is killed meanwhile, the upload is not lost: Resume and
// TakeOver with the old ID complete the change.
//
// TakeOver changes nothing if it fails because of its arguments. If the size differs,
// the error wraps [session.ErrSourceChanged]. If an upload of path to the same
// destination is saved, it wraps [fs.ErrExist]. If a process works on either upload,
// it wraps [state.ErrInUse]. If the upload belongs to another endpoint, it wraps
// [session.ErrURIMismatch].
func (u *Uploader) TakeOver(ctx context.Context, id, path string) (newID string, err error) {
	store, err := u.savedStore()
	if err == nil {
		newID, err = u.takeOver(ctx, store, id, path)
	}
	if err != nil {
		return "", fmt.Errorf("take over: %w", err)
	}
	return newID, nil
}

func (u *Uploader) takeOver(ctx context.Context, store state.Store, id, path string) (string, error) {
	ctx, done := u.storeCall(ctx)
	defer done()
	token, from, err := lockSaved(ctx, store, id)
	if err != nil {
		return "", err
	}
	defer release(ctx, from)
	moved, err := u.withSource(token, path)
	if err != nil {
		return "", err
	}
	if moved.ID == token.ID {
		return moved.ID, from.Save(ctx, moved)
	}
	to, err := acquireVacant(ctx, store, moved, path)
	if err != nil {
		return "", err
	}
	defer release(ctx, to)
	old := *moved
	old.ID, old.MovedTo = token.ID, moved.ID
	if err := from.Save(ctx, &old); err != nil {
		return "", err
	}
	return moved.ID, move(ctx, &old, from, to)
}

// withSource returns t with the source at path and the ID for that source. Only the
// size is compared.
func (u *Uploader) withSource(t *state.Token, path string) (*state.Token, error) {
	if t.Endpoint != u.client.Endpoint() {
		return nil, fmt.Errorf("the upload was started at %s: %w", t.Endpoint, session.ErrURIMismatch)
	}
	if err := state.Adopt(u.client, t); err != nil {
		return nil, err
	}
	src, err := chunk.Open(path)
	if err != nil {
		return nil, err
	}
	defer src.Close()
	if src.Size() != t.Source.Size {
		return nil, fmt.Errorf("%w: %s has %d bytes, the source of the upload %d", session.ErrSourceChanged, path, src.Size(), t.Source.Size)
	}
	moved := *t
	moved.MovedTo, moved.MovedFrom, moved.SourceIdentity = "", "", ""
	moved.Source = chunk.Identity{Size: src.Size()} // see sameSource
	if moved.SourcePath, err = filepath.Abs(path); err != nil {
		return nil, err
	}
	moved.ID, err = u.ID(path, t.Spec)
	return &moved, err
}

// acquireVacant acquires the lease of the ID of t, whose source is path. If the store has
// a usable upload with that ID, the error wraps fs.ErrExist.
func acquireVacant(ctx context.Context, store state.Store, t *state.Token, path string) (state.Lease, error) {
	lease, err := state.Acquire(ctx, store, t.ID)
	if err != nil {
		return nil, fmt.Errorf("upload of %s: %w", path, err)
	}
	if _, err = loadMoved(ctx, store, lease); unusable(err) {
		return lease, nil
	}
	release(ctx, lease)
	if err == nil {
		err = fmt.Errorf("%w: upload %s of %s to %s; resume that upload, or delete it first", fs.ErrExist, t.ID, path, t.Spec.URL())
	}
	return nil, err
}

// unusable reports whether err means that there is no saved upload, or only a corrupt one.
func unusable(err error) bool {
	return errors.Is(err, state.ErrNoToken) || errors.Is(err, state.ErrCorruptToken)
}

// movedError reports that a saved upload was moved to another ID.
type movedError struct{ from, to string }

func (e *movedError) Error() string {
	return fmt.Sprintf("%v: %s was moved to %s", state.ErrNoToken, e.from, e.to)
}

func (e *movedError) Unwrap() error { return state.ErrNoToken }

// lockSaved acquires the lease of a saved upload, and loads it. If it was moved, the
// Token has another ID. The caller must release the lease.
func lockSaved(ctx context.Context, store state.Store, id string) (*state.Token, state.Lease, error) {
	for {
		lease, err := state.Acquire(ctx, store, id)
		if err != nil {
			return nil, nil, err
		}
		t, err := loadMoved(ctx, store, lease)
		if err == nil {
			return t, lease, nil
		}
		release(ctx, lease)
		moved, ok := errors.AsType[*movedError](err)
		if !ok {
			return nil, nil, err
		}
		id = moved.to
	}
}

// follow returns the ID that a saved upload has after a move, or id.
func follow(ctx context.Context, store state.Store, id string) (string, error) {
	if t, err := store.Load(ctx, id); err != nil || t.MovedTo == "" {
		return id, nil // a later call returns the error again
	}
	t, lease, err := lockSaved(ctx, store, id)
	if err != nil {
		return "", err
	}
	release(ctx, lease)
	return t.ID, nil
}

// loadMoved loads the saved upload of a lease, and completes a move from or to its ID.
// If the upload was moved to another ID, the error is a *movedError.
//
// A move takes four steps, under the leases of both IDs:
//
//  1. The Token of the old ID gets the new path, and MovedTo.
//  2. The Token of the new ID is saved, with MovedFrom.
//  3. The old one is deleted.
//  4. The new one is saved without MovedFrom.
//
// Before step 2 the old Token is used, and afterwards the new one. A Token with
// MovedFrom is not used, and not deleted, before the old one is deleted. An old Token
// without a new one therefore always means that step 2 was not done, and never that
// the upload has finished since.
func loadMoved(ctx context.Context, store state.Store, lease state.Lease) (*state.Token, error) {
	t, err := lease.Load(ctx)
	if err != nil || t.MovedTo == "" && t.MovedFrom == "" {
		return t, err
	}
	other, err := state.Acquire(ctx, store, cmp.Or(t.MovedTo, t.MovedFrom))
	if err != nil {
		return nil, err
	}
	defer release(ctx, other)
	if t.MovedTo == "" {
		return arrived(ctx, t, other, lease)
	}
	if err := move(ctx, t, lease, other); err != nil {
		return nil, err
	}
	return nil, &movedError{t.ID, t.MovedTo}
}

// move makes the steps of a move after the first, with the leases of both IDs. old is
// the saved Token of the old ID.
func move(ctx context.Context, old *state.Token, from, to state.Lease) error {
	moved, err := to.Load(ctx)
	switch {
	case unusable(err):
		copied := *old
		copied.ID, copied.MovedTo, copied.MovedFrom = old.MovedTo, "", old.ID
		if err := to.Save(ctx, &copied); err != nil {
			return err
		}
		moved = &copied
	case err != nil:
		return err
	}
	if moved.MovedFrom != old.ID {
		// The user deleted the upload and started another.
		return from.Delete(ctx)
	}
	_, err = arrived(ctx, moved, from, to)
	return err
}

// arrived makes the last two steps of a move, with the leases of both IDs. It returns
// the Token to use.
func arrived(ctx context.Context, moved *state.Token, from, to state.Lease) (*state.Token, error) {
	switch old, err := from.Load(ctx); {
	case err == nil && old.MovedTo == moved.ID:
		if err := from.Delete(ctx); err != nil {
			return nil, err
		}
	case err != nil && !unusable(err):
		return nil, err
	}
	clean := *moved
	clean.MovedFrom = ""
	return &clean, to.Save(ctx, &clean)
}

// Import saves an upload that was started on another machine, so that this Uploader
// can resume it. t is a Token that [state.Encode] wrote there, and that
// [state.Decode] returned here. path is a copy of its source. Import returns the ID
// for [Uploader.Resume]. [Uploader.File] finds the upload, too.
//
// The bytes of the copy are compared, because its times and its inode differ. Import
// compares the size. The resume compares every checksum in t, and the one that the
// service reports, before it sends anything. If the copy differs, the error is
// [session.ErrSourceChanged], and the upload is kept. The service compares the other
// bytes before the object exists; the error is then [session.ErrChecksum]. Bytes that
// were never sent may differ: the object has the bytes of the copy.
//
// The destination, the options of the object and the session are those of t. Import
// only a Token that you trust.
//
// Resume an upload on one machine only. If two machines do, the object is not a
// mixture, but either may fail with [session.ErrUnexpectedData],
// [session.ErrProtocol] or [session.ErrChecksum]. Import does not replace an upload
// of the same file to the same destination: the error wraps [fs.ErrExist]. For a
// session of another endpoint or bucket it wraps [session.ErrURIMismatch]. The
// service decides whether a session that is older than a week still exists.
func (u *Uploader) Import(ctx context.Context, t *state.Token, path string) (id string, err error) {
	store, err := u.savedStore()
	if err == nil {
		id, err = u.importInto(ctx, store, t, path)
	}
	if err != nil {
		return "", fmt.Errorf("import: %w", err)
	}
	return id, nil
}

func (u *Uploader) importInto(ctx context.Context, store state.Store, t *state.Token, path string) (string, error) {
	saved, err := u.withSource(t, path)
	if err != nil {
		return "", err
	}
	ctx, done := u.storeCall(ctx)
	defer done()
	lease, err := acquireVacant(ctx, store, saved, path)
	if err != nil {
		return "", err
	}
	defer release(ctx, lease)
	return saved.ID, lease.Save(ctx, saved)
}

// imported reports whether Import or TakeOver saved the Token, and it was not resumed
// since. Of the source, it then has only the size.
func imported(t *state.Token) bool {
	return t.SourceIdentity == "" && t.Source == chunk.Identity{Size: t.Source.Size}
}
