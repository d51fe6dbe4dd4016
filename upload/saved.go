package upload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"gcsup/session"
)

// SavedUpload describes an upload that [Options.Store] has, as it was last saved.
// It has no secret. [Uploader.Query] asks the service about it.
type SavedUpload struct {
	ID       string // for Resume, Cancel, Query and TakeOver
	Endpoint string // where it was started; an Uploader of another endpoint cannot resume it
	Spec     Spec   // the object, as given when the session was started

	Path     string // of the source; "" if it has an identity of the caller's
	Identity string // of the source, see Uploader.ReaderAt; "" if it is a file
	Size     int64  // of the object; -1 if the source is compressed, and its end was not

	Committed int64 // offset up to which the service had acknowledged the bytes
	Sent      int64 // offset up to which bytes are known to have been sent; the service may hold more than it acknowledged

	Started time.Time // when the session was started
	Expires time.Time // when the service drops the session, by the clock of this machine; zero if it keeps it

	// InUse reports that a process, which may be this one, works on the upload.
	// It is false if the store is no [session.LockChecker].
	InUse bool
}

// Source names the source for people: its path, or the identity of the caller's.
func (s SavedUpload) Source() string { return cmp.Or(s.Path, s.Identity) }

// Saved iterates over the uploads that [Options.Store] has, sorted by ID, without a
// request to the service. Those of other endpoints are included. The iteration
// takes no lock: an upload that another process finishes meanwhile may be missing,
// or be yielded as it was.
//
// A saved upload that cannot be used is yielded as an error, with nothing but its
// ID, and the iteration continues. The error wraps [session.ErrCorruptToken],
// [session.ErrInsecurePermissions] or [session.ErrTokenVersion]. If the store
// cannot be listed or ctx is done, the last error has no ID. Without a store
// nothing is saved.
//
// Saved loads up to 8 uploads ahead of the caller, because a store may be far away.
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
		ids, err := store.List(ctx)
		if err != nil {
			yield(SavedUpload{}, fmt.Errorf("saved uploads: %w", err))
			return
		}
		next, stop := loadAhead(ctx, store, ids)
		defer stop()
		for range ids {
			if ctx.Err() != nil {
				yield(SavedUpload{}, fmt.Errorf("saved uploads: %w: %v", ctx.Err(), context.Cause(ctx)))
				return
			}
			loaded := next()
			if errors.Is(loaded.err, session.ErrNoToken) {
				continue // it was finished after List
			}
			if !yield(loaded.SavedUpload, loaded.err) {
				return
			}
		}
	}
}

// loadedAhead is how many saved uploads are loaded at a time.
const loadedAhead = 8

// loadedUpload is what loadSaved returned.
type loadedUpload struct {
	SavedUpload
	err error
}

// loadAhead loads saved uploads. next returns one of each ID, in order. The caller must
// call stop, which returns when the store is not used any more.
func loadAhead(ctx context.Context, store session.Store, ids []string) (next func() loadedUpload, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var pending []chan loadedUpload
	next = func() loadedUpload {
		for len(ids) > 0 && len(pending) < loadedAhead {
			id, loaded := ids[0], make(chan loadedUpload, 1)
			ids, pending = ids[1:], append(pending, loaded)
			go func() {
				saved, err := loadSaved(ctx, store, id)
				loaded <- loadedUpload{saved, err}
			}()
		}
		first := pending[0]
		pending = pending[1:]
		return <-first
	}
	return next, func() {
		cancel()
		for _, loaded := range pending {
			<-loaded
		}
	}
}

// loadSaved describes the saved upload with an ID.
func loadSaved(ctx context.Context, store session.Store, id string) (SavedUpload, error) {
	token, err := store.Load(ctx, id)
	if err != nil {
		return SavedUpload{ID: id}, err
	}
	if token.MovedTo != "" && savedIn(ctx, store, token.MovedTo) {
		return SavedUpload{ID: id}, session.ErrNoToken // the other one is yielded
	}
	saved := Describe(token)
	if c, ok := store.(session.LockChecker); ok {
		if saved.InUse, err = c.Locked(ctx, id); err != nil {
			return SavedUpload{ID: id}, err
		}
	}
	return saved, nil
}

// Describe describes a Token, as [Uploader.Saved] does. InUse is false.
func Describe(t *session.Token) SavedUpload {
	committed, sent := t.Committed, sentOffset(t)
	if t.Parts != nil {
		committed, sent = t.Parts.Offsets(t.Source.Size)
	}
	return SavedUpload{
		ID: t.ID, Endpoint: t.Endpoint, Spec: t.Spec, Path: t.SourcePath, Identity: t.SourceIdentity, Size: t.ObjectSize(),
		Committed: committed, Sent: sent,
		Started: t.Created, Expires: t.Expires(),
	}
}

// sentOffset returns the offset up to which bytes are known to have been sent: that
// of the last checkpoint, or the committed offset.
func sentOffset(t *session.Token) int64 {
	if t.Gzip != nil {
		return t.Committed // the last checkpoint is the end of what was about to be sent
	}
	return max(t.Committed, t.Checkpoint(t.Source.Size).Offset)
}
