package upload

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"path/filepath"
	"time"

	"gcsup/chunk"
	"gcsup/internal/sourcefile"
	"gcsup/session"
	"gcsup/session/state"
	"gcsup/upload/internal/saved"
	"gcsup/upload/internal/spool"
)

// SavedUpload describes an upload in [Options.Store], as it was last saved. It has no
// secret. [Uploader.Query] returns the state at the service.
type SavedUpload struct {
	ID       string // for Resume, Cancel, Query and TakeOver
	Endpoint string // where it was started; an Uploader of another endpoint cannot resume it
	Spec     Spec   // the object, as given when the session was started

	Path     string // of the source; "" for a stream, or if there is an Identity
	Identity string // of the source, see Uploader.ReaderAt; of a stream in a spool, CallOptions.SourceName; "" if it is a file
	Spool    string // the directory with the bytes of a stream, see Spool; "" for another source
	Size     int64  // of the object; -1 if the compressed size, or that of a stream, is not known yet

	Committed int64 // the committed offset
	Sent      int64 // offset up to which bytes are known to have been sent; the service may have more bytes than Committed

	Started time.Time // when the session was started
	Expires time.Time // when the service drops the session, by the clock of this machine; zero if it never does

	// ToRemove reports that the upload ended, and that parts of it at the service could not be removed. Prune
	// and Cancel try again. So does the next upload of the same source, unless the parts were saved under
	// another ID, because the upload started over. A stream that is sent in parts is saved in this way from
	// its beginning. If its process is killed, Prune removes the parts. If the Store is not a [state.Leaser],
	// the next stream in parts removes them, too.
	ToRemove bool

	// Incomplete reports that the end of a stream was not recorded in its spool, so that the object
	// cannot be made. If the upload is in use, its input has not ended yet. Otherwise Prune and
	// Cancel remove it, and so does the next stream in parts if it was sent in parts and the Store has no leases.
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

// Holding describes what the service has of a saved upload.
type Holding struct {
	State  SessionState
	Stored int64           // SessionOpen: number of committed bytes
	Object *session.Object // SessionFinished: the object that the upload created; otherwise nil
}

// Saved iterates over the uploads in [Options.Store], sorted by ID, without a request
// to the service. It includes those of other endpoints. It takes no lock: if another
// process finishes an upload meanwhile, that upload may be missing or yielded in its
// earlier state.
//
// For a saved upload that cannot be used, it yields only the ID and an error, and
// continues. The error wraps [state.ErrCorrupt],
// [state.ErrInsecurePermissions] or [state.ErrVersion]. If the store cannot
// be listed or ctx is done, the last pair has an error and no ID. Without a store
// there are no uploads.
//
// Saved loads up to 8 uploads ahead of the caller, because a store may be slow.
func (u *Uploader) Saved(ctx context.Context) iter.Seq2[SavedUpload, error] {
	return func(yield func(SavedUpload, error) bool) {
		store := u.opts.Store
		if store == nil {
			return
		}
		ctx, done := storeCall(ctx, u)
		defer done()
		for e := range saved.List(ctx, store) {
			saved := SavedUpload{ID: e.ID}
			if e.Err == nil {
				saved = Describe(e.Upload)
				saved.InUse = e.InUse
			}
			if !yield(saved, e.Err) {
				return
			}
		}
	}
}

// savedStore returns the store. If there is none, the error wraps [state.ErrNotFound].
func (u *Uploader) savedStore() (state.Store, error) {
	if u.opts.Store == nil {
		return nil, fmt.Errorf("%w: there is no store", state.ErrNotFound)
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

// Describe returns the description of a saved upload that [Uploader.Saved] yields. InUse is
// false. For a stream it looks at the spool.
func Describe(t *state.Upload) SavedUpload {
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

// describeSpool adds to the description of a saved stream what its files show.
func describeSpool(s *SavedUpload, doc *state.Upload) {
	s.Spool = filepath.Join(doc.Spool.Dir, doc.ID)
	end, err := spool.Ended(doc.Spool.Dir, doc.ID)
	switch {
	case err != nil: // Resume returns it
	case end == nil:
		s.Incomplete = true
	default:
		s.Size = end.Offset
	}
}

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
	return changeSaved(ctx, u, "take over", func(ctx context.Context, store state.Store) (string, error) {
		if err := u.notPartedStream(ctx, id); err != nil {
			return "", err
		}
		return saved.Move(ctx, store, id, path, func(t *state.Upload) (*state.Upload, error) { return withSource(u, t, path) })
	})
}

// withSource returns t with the source at path and the ID for that source. Only the
// size is compared.
func withSource(u *Uploader, t *state.Upload, path string) (*state.Upload, error) {
	if err := foreign(u, t.ID, t.Endpoint); err != nil {
		return nil, err
	}
	switch {
	case t.Spool != nil:
		return nil, fmt.Errorf("%w: upload %s is a stream, which no file can replace", session.ErrInvalid, t.ID)
	case ofPartedStream(t):
		return nil, errOnlyRemovable(t.ID)
	}
	if err := state.Adopt(u.client, t); err != nil {
		return nil, err
	}
	src, err := sourcefile.Open(path)
	if err != nil {
		return nil, err
	}
	defer src.Close()
	if src.Size() != t.Source.Size {
		return nil, fmt.Errorf("%w: %s has %d bytes, the source of the upload %d", session.ErrSourceChanged, path, src.Size(), t.Source.Size)
	}
	moved := *t
	moved.MovedTo, moved.MovedFrom, moved.SourceIdentity = "", "", ""
	moved.Source = chunk.Identity{Size: src.Size()} // see imported
	if moved.SourcePath, err = filepath.Abs(path); err != nil {
		return nil, err
	}
	moved.ID, err = u.ID(path, t.Spec)
	return &moved, err
}

// Import saves an upload that was started on another machine, so that this Uploader
// can resume it. t is a saved upload that [state.Encode] wrote there, and that
// [state.Decode] returned here. path is a copy of its source. Import returns the ID
// for [Uploader.Resume]. [Uploader.File] finds the upload, too.
//
// The bytes of the copy are compared, because its times and its inode differ. Import
// compares the size. The resume compares every checksum in t, and the checksum that the
// service reports, before it sends anything. If the copy differs, the error is
// [session.ErrSourceChanged], and the upload is kept. The service compares the other
// bytes before the object exists; the error is then [session.ErrChecksum]. Bytes that
// were never sent may differ: the object has the bytes of the copy.
//
// The destination, the options of the object and the session are those of t. Import
// only a saved upload that you trust.
//
// Resume an upload on one machine only. If two machines do, the object is not a
// mixture, but either may fail with [session.ErrUnexpectedData],
// [session.ErrProtocol] or [session.ErrChecksum]. Import does not replace an upload
// of the same file to the same destination: the error wraps [fs.ErrExist]. For a
// session of another endpoint or bucket it wraps [session.ErrURIMismatch]. The
// service decides whether a session that is older than a week still exists.
func (u *Uploader) Import(ctx context.Context, t *state.Upload, path string) (id string, err error) {
	return changeSaved(ctx, u, "import", func(ctx context.Context, store state.Store) (string, error) {
		own, err := withSource(u, t, path)
		if err != nil {
			return "", err
		}
		return own.ID, saved.Add(ctx, store, own, path)
	})
}

// changeSaved calls change with the store. what names the call in an error.
func changeSaved(ctx context.Context, u *Uploader, what string, change func(context.Context, state.Store) (id string, err error)) (id string, err error) {
	store, err := u.savedStore()
	if err == nil {
		ctx, done := storeCall(ctx, u)
		defer done()
		id, err = change(ctx, store)
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", what, err)
	}
	return id, nil
}
