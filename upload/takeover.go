package upload

import (
	"context"
	"fmt"
	"path/filepath"

	"gcsup/chunk"
	"gcsup/session"
	"gcsup/session/state"
	"gcsup/upload/internal/saved"
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
	return changeSaved(ctx, u, "take over", func(ctx context.Context, store state.Store) (string, error) {
		return saved.Move(ctx, store, id, path, func(t *state.Token) (*state.Token, error) { return withSource(u, t, path) })
	})
}

// withSource returns t with the source at path and the ID for that source. Only the
// size is compared.
func withSource(u *Uploader, t *state.Token, path string) (*state.Token, error) {
	if err := foreign(u, t.ID, t.Endpoint); err != nil {
		return nil, err
	}
	if t.Spool != nil {
		return nil, fmt.Errorf("%w: upload %s is a stream, which no file can replace", session.ErrInvalid, t.ID)
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
	moved.Source = chunk.Identity{Size: src.Size()} // see imported
	if moved.SourcePath, err = filepath.Abs(path); err != nil {
		return nil, err
	}
	moved.ID, err = u.ID(path, t.Spec)
	return &moved, err
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
