package upload

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"gcsup/chunk"
	"gcsup/session"
)

// Import saves an upload that was begun elsewhere, on another machine say, so
// that this Uploader can go on with it. t is what [session.Encode] wrote there
// and [session.Decode] read here, path is a copy of its source. The result is
// its ID, for [Uploader.Resume]; [Uploader.File] finds it too.
//
// The times and the inode of a copy say nothing, so its bytes decide: the size
// now, and when the upload goes on, before anything is sent, all that t has
// checksums of and all that the service reports a checksum of. A copy that
// differs is [session.ErrSourceChanged], and the upload is kept. Bytes of which
// neither has a checksum are compared by the service at the end, before the
// object comes into being: [session.ErrChecksum]. What was never sent may be
// other bytes: the object is what the copy is.
//
// The destination, and how the object is to be made, are t's, and so is the
// session: take t from where you trust only.
//
// Go on with an upload on one machine only. Two make no mixture, but either may
// fail, with [session.ErrForeignWriter], [session.ErrContradiction] or
// [session.ErrChecksum]. An upload of the same file to the same destination
// that is saved here already is not replaced; the error wraps [fs.ErrExist].
// A session of another endpoint or bucket is [session.ErrForeignURI]. The service
// decides whether one that is older than a week still exists.
func (u *Uploader) Import(ctx context.Context, t *session.Token, path string) (id string, err error) {
	store := u.opts.Store
	if store == nil {
		return "", errors.New("import: there is no store")
	}
	if t.Endpoint != u.client.Endpoint() {
		return "", fmt.Errorf("import: the upload was begun at %s: %w", t.Endpoint, session.ErrForeignURI)
	}
	if err := u.client.Adopt(t); err != nil {
		return "", fmt.Errorf("import: %w", err)
	}
	src, err := chunk.Open(path)
	if err != nil {
		return "", err
	}
	defer src.Close()
	if src.Size() != t.Source.Size {
		return "", fmt.Errorf("import: %w: %s has %d bytes, the source of the upload %d", session.ErrSourceChanged, path, src.Size(), t.Source.Size)
	}
	saved := *t
	saved.Source = chunk.Identity{Size: src.Size()} // see sameSource
	if saved.SourcePath, err = filepath.Abs(path); err != nil {
		return "", fmt.Errorf("import: %w", err)
	}
	if saved.ID, err = u.ID(path, t.Spec); err != nil {
		return "", fmt.Errorf("import: %w", err)
	}
	unlock, err := store.Lock(ctx, saved.ID)
	if err != nil {
		return "", fmt.Errorf("import: %w", err)
	}
	defer unlock()
	switch _, err := store.Load(ctx, saved.ID); {
	case err == nil:
		return "", fmt.Errorf("import: %w: upload %s of %s to %s; resume that, or forget it first", fs.ErrExist, saved.ID, path, t.Spec.URL())
	case !errors.Is(err, session.ErrNoToken) && !errors.Is(err, session.ErrDamaged):
		return "", fmt.Errorf("import: %w", err)
	}
	if err := store.Save(ctx, &saved); err != nil {
		return "", fmt.Errorf("import: %w", err)
	}
	return saved.ID, nil
}

// imported reports whether a Token is one that Import saved, and that was not
// resumed since: it knows nothing of its source but the size.
func imported(t *session.Token) bool {
	return t.Source == chunk.Identity{Size: t.Source.Size}
}
