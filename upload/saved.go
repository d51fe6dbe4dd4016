package upload

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"time"

	"gcsup/session/state"
	"gcsup/upload/internal/saved"
)

// SavedUpload describes an upload in [Options.Store], as it was last saved. It has no
// secret. [Uploader.Query] returns the state at the service.
type SavedUpload struct {
	ID       string // for Resume, Cancel, Query and TakeOver
	Endpoint string // where it was started; an Uploader of another endpoint cannot resume it
	Spec     Spec   // the object, as given when the session was started

	Path     string // of the source; "" if it has an identity of the caller's, or is a stream
	Identity string // of the source, see Uploader.ReaderAt; "" if it is a file
	Spool    string // the directory with the bytes of a stream, see InSpool; "" for another source
	Size     int64  // of the object; -1 if the compressed size, or that of a stream, is not known yet

	Committed int64 // offset up to which the service had acknowledged the bytes
	Sent      int64 // offset up to which bytes are known to have been sent; the service may have more bytes than it acknowledged

	Started time.Time // when the session was started
	Expires time.Time // when the service drops the session, by the clock of this machine; zero if it never does

	// ToRemove reports that the upload ended, and something that it stored at the service,
	// in parts, could not be removed. Prune and Cancel try again. So does the next upload of
	// the same source, unless an upload that started over saved this one under another ID.
	ToRemove bool

	// Incomplete reports that the end of a stream was not recorded in its spool, so that the object
	// cannot be made. If the upload is in use, its input has not ended yet. Otherwise Prune and
	// Cancel remove it.
	Incomplete bool

	// InUse reports that a process, maybe this one, works on the upload. It is false if
	// the store is not a [state.LockChecker].
	InUse bool
}

// Source returns the name of the source for people: its path, the identity that
// the caller gave, or "-" for a stream.
func (s SavedUpload) Source() string {
	if s.Spool != "" {
		return "-"
	}
	return cmp.Or(s.Path, s.Identity)
}

// Saved iterates over the uploads in [Options.Store], sorted by ID, without a request
// to the service. It includes those of other endpoints. It takes no lock: if another
// process finishes an upload meanwhile, that upload may be missing or yielded in its
// earlier state.
//
// For a saved upload that cannot be used, it yields only the ID and an error, and
// continues. The error wraps [state.ErrCorruptToken],
// [state.ErrInsecurePermissions] or [state.ErrTokenVersion]. If the store cannot
// be listed or ctx is done, the last pair has an error and no ID. Without a store
// there are no uploads.
//
// Saved loads up to 8 uploads ahead of the caller, because a store may be slow.
func (u *Uploader) Saved(ctx context.Context) iter.Seq2[SavedUpload, error] {
	return func(yield func(SavedUpload, error) bool) {
		if u.invalid != nil {
			yield(SavedUpload{}, u.invalid)
			return
		}
		store := u.opts.Store
		if store == nil {
			return
		}
		ctx, done := storeCall(ctx, u)
		defer done()
		for e := range saved.List(ctx, store) {
			saved := SavedUpload{ID: e.ID}
			if e.Err == nil {
				saved = Describe(e.Token)
				saved.InUse = e.InUse
			}
			if !yield(saved, e.Err) {
				return
			}
		}
	}
}

// savedStore returns the store. If there is none, the error wraps [state.ErrNoToken].
func (u *Uploader) savedStore() (state.Store, error) {
	switch {
	case u.invalid != nil:
		return nil, u.invalid
	case u.opts.Store == nil:
		return nil, fmt.Errorf("%w: there is no store", state.ErrNoToken)
	}
	return u.opts.Store, nil
}

// findSaved returns the ID that a saved upload has now.
func (u *Uploader) findSaved(ctx context.Context, id string) (string, error) {
	store, err := u.savedStore()
	if err != nil {
		return "", err
	}
	return saved.Follow(ctx, store, id)
}

// Describe returns the description of a Token that [Uploader.Saved] yields. InUse is
// false. For a stream it looks at the spool.
func Describe(t *state.Token) SavedUpload {
	committed, sent := t.Committed, t.Committed
	switch {
	case t.Parts != nil:
		committed, sent = t.Parts.Offsets(t.Source.Size)
	case t.Gzip == nil: // otherwise the bytes before the last checkpoint may not have been sent
		sent = max(sent, saved.LastCheckpoint(t.Checkpoints))
	}
	s := SavedUpload{
		ID: t.ID, Endpoint: t.Endpoint, Spec: t.Spec, Path: t.SourcePath, Identity: t.SourceIdentity, Size: t.ObjectSize(),
		Committed: committed, Sent: sent,
		Started: t.Created, Expires: t.Expires(), ToRemove: t.Parts != nil && t.Parts.Over,
	}
	if t.Spool != nil {
		describeSpool(&s, t)
	}
	return s
}
