package upload

import (
	"context"
	"errors"
	"fmt"

	"gcsup/chunk"
	"gcsup/session"
)

// Import saves an upload that was started on another machine, so that this Uploader
// can resume it. t is a Token that [session.Encode] wrote there, and that
// [session.Decode] returned here. path is a copy of its source. Import returns the ID
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
	ctx, done := u.storeCall(ctx)
	defer done()
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

// imported reports whether Import or TakeOver saved the Token, and it was not resumed
// since. Of the source, it then has only the size.
func imported(t *session.Token) bool {
	return t.SourceIdentity == "" && t.Source == chunk.Identity{Size: t.Source.Size}
}
