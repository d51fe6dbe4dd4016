package upload

import (
	"context"
	"errors"
	"fmt"

	"gcsup/chunk"
	"gcsup/session"
)

// Import saves an upload that was started on another machine, so that this
// Uploader can resume it. t is what [session.Encode] wrote there and
// [session.Decode] read here. path is a copy of its source. Import returns the
// ID for [Uploader.Resume]. [Uploader.File] finds the upload, too.
//
// The bytes of the copy decide whether it is the same file, because its times and
// its inode are others. Import compares the size. The resume compares, before it
// sends anything, every checksum in t and the one that the service reports. A
// copy that differs is [session.ErrSourceChanged], and the upload is kept. Bytes
// without a checksum are compared by the service before the object exists:
// [session.ErrChecksum]. Bytes that were never sent may differ: the object is
// what the copy is.
//
// The destination, the options of the object and the session are those of t.
// Import only what you trust.
//
// Resume an upload on one machine only. Two machines make no mixture, but either
// may fail with [session.ErrUnexpectedData], [session.ErrProtocol] or
// [session.ErrChecksum]. Import does not replace an upload of the same file to
// the same destination: the error wraps [fs.ErrExist]. A session of another
// endpoint or bucket is [session.ErrURIMismatch]. The service decides whether a
// session that is older than a week still exists.
func (u *Uploader) Import(ctx context.Context, t *session.Token, path string) (id string, err error) {
	if u.invalid != nil {
		return "", u.invalid
	}
	store := u.opts.Store
	if store == nil {
		return "", errors.New("import: there is no store")
	}
	saved, err := u.withSource(t, path)
	if err != nil {
		return "", fmt.Errorf("import: %w", err)
	}
	lease, err := session.Acquire(ctx, store, saved.ID)
	if err != nil {
		return "", fmt.Errorf("import: %w", err)
	}
	defer release(ctx, lease)
	if err := vacant(ctx, store, lease, saved, path); err != nil {
		return "", fmt.Errorf("import: %w", err)
	}
	if err := lease.Save(ctx, saved); err != nil {
		return "", fmt.Errorf("import: %w", err)
	}
	return saved.ID, nil
}

// imported reports whether a Token is one that Import or TakeOver saved, and that
// was not resumed since: it knows nothing of its source but the size.
func imported(t *session.Token) bool {
	return t.SourceIdentity == "" && t.Source == chunk.Identity{Size: t.Source.Size}
}
