package upload

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"unicode/utf8"

	"gcsup/chunk"
	"gcsup/internal/sourcefile"
	"gcsup/session"
	"gcsup/session/state"
	"gcsup/upload/internal/source"
)

// File uploads the file at path. If an upload of the same file to the same
// destination was interrupted, it is resumed; see [Options.Store]. If another process
// holds the lease of that upload and may have died, File waits, and uses the object if
// that process makes it meanwhile.
//
// If ctx is done, File returns within seconds, even if a read of the file hangs.
//
// Besides the sentinels of packages session and state, errors wrap [chunk.ErrRead] or a
// *fs.PathError if the file, or the store, cannot be used.
func (u *Uploader) File(ctx context.Context, path string, spec Spec) (*Result, error) {
	c := newCall(ctx, u, spec, u.newBudget())
	return c.do(ctx, func(ctx context.Context) error { return uploadFile(ctx, c, path) })
}

// Reader uploads the bytes of r until EOF. No other call can resume it, because r
// cannot be read again, unless [Options].Spool keeps the bytes. If r fails, the upload
// fails with [chunk.ErrRead], and there is no object.
//
// A stream of at most 256 KiB is sent in one request. Any other stream gets a
// session, or is sent in parts: see [Parts].
//
// Without a spool, Reader reads nothing before the preconditions are checked. Then it reads 256 KiB and one
// byte, to determine whether the stream needs a session. With Gzip in spec, it reads as many bytes as
// compress to this size. It reads nothing more before the session is open, with one exception: if the stream may be
// sent in parts, it first reads one window ([Options].Window) and one byte, for at most 10 s. After Reader has
// returned, it reads nothing, so that a caller that can seek may try again. If an upload fails, or its ctx ends,
// Reader therefore waits for the current Read. If r has a method SetReadDeadline that works (a [net.Conn], or one end
// of an [os.Pipe]), Reader ends the Read with it and clears the deadline. Otherwise the caller must make the Read
// return, usually by closing r.
func (u *Uploader) Reader(ctx context.Context, r io.Reader, spec Spec) (*Result, error) {
	c := newCall(ctx, u, spec, u.newBudget())
	return c.finish(ctx, uploadReader(ctx, c, r))
}

// Resume continues the saved upload that has this ID, see [Result.ID]. The error
// wraps [state.ErrNotFound] if there is none, and [ErrSourceNeeded] if its source is
// not a file.
func (u *Uploader) Resume(ctx context.Context, id string) (*Result, error) {
	c := newCall(ctx, u, Spec{}, u.newBudget())
	return c.do(ctx, func(ctx context.Context) error { return uploadSaved(ctx, c, id) })
}

// uploadSaved resumes a saved upload.
func uploadSaved(ctx context.Context, c *call, id string) error {
	ctx = c.storeContext(ctx)
	id, err := c.u.findSaved(ctx, id)
	if err != nil {
		return err
	}
	c.identify(id, c.spec)
	doc, damaged, err := c.openJournal(ctx, state.Upload{ID: id}, nil)
	if err != nil {
		return err
	}
	defer c.journal.Close()
	switch {
	case damaged != nil:
		return damaged
	case doc == nil:
		return fmt.Errorf("%w: %s", state.ErrNotFound, id)
	}
	c.identify(id, doc.Spec)
	if err := foreign(c.u, id, doc.Endpoint); err != nil {
		return err
	}
	switch {
	case doc.Parts != nil && doc.Parts.Over:
		return (&savedCall{call: c, doc: doc}).resumeRemoval(ctx)
	case doc.Spool != nil:
		return resumeSpooled(ctx, c, doc)
	case doc.SourceIdentity != "":
		return fmt.Errorf("%w: the source of upload %s is %q, which has no path: only the program that began it can resume it, with ReaderAt", ErrSourceNeeded, id, doc.SourceIdentity)
	}
	return resumeFile(ctx, c, doc)
}

// ReaderAt uploads the first size bytes of r, for content that is not a file on this
// machine, such as a file in an archive or in another store. r must always return
// the same bytes. It may be read at several offsets at the same time.
//
// identity identifies these bytes, for example by a version or a hash. If it is not
// "" and there is a store, an interrupted upload is saved, and a call with the same
// identity and destination resumes it, even in another process. The same identity
// must always mean the same bytes: a resume compares only the size and the bytes
// between the last two saved checksums, usually 64 MiB ([session.ErrSourceChanged]).
// [Uploader.Resume] cannot resume such an upload, because it has no r: [ErrSourceNeeded].
//
// If ctx is done, ReaderAt returns within seconds, even if a call of r hangs.
func (u *Uploader) ReaderAt(ctx context.Context, r io.ReaderAt, size int64, identity string, spec Spec) (*Result, error) {
	c := newCall(ctx, u, spec, u.newBudget())
	return c.do(ctx, func(ctx context.Context) error {
		if size < 0 || !utf8.ValidString(identity) {
			return fmt.Errorf("%w: the source has %d bytes and the identity %q", session.ErrInvalid, size, identity)
		}
		return uploadSource(ctx, c, source.FromReaderAt(r, size, c.reread), identity)
	})
}

// FS uploads a file of fsys. A file with a method ReadAt, such as those of [os.DirFS]
// and package embed, is read again if necessary. Another file is uploaded as by
// [Uploader.Reader], and its size is checked: [ErrTruncated]. No other call can
// resume the upload. [Uploader.File] is for files on disk.
func (u *Uploader) FS(ctx context.Context, fsys fs.FS, name string, spec Spec) (*Result, error) {
	c := newCall(ctx, u, spec, u.newBudget())
	return c.do(ctx, func(ctx context.Context) error { return uploadFS(ctx, c, fsys, name) })
}

func uploadFS(ctx context.Context, c *call, fsys fs.FS, name string) error {
	f, err := fsys.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	if open, ok := f.(sourcefile.ReaderAt); ok {
		src, err := sourcefile.FromFile(open, 0)
		if err != nil {
			return err
		}
		file, err := source.NewFile(src, "the source", c.reread)
		if err != nil {
			return err
		}
		return uploadSource(ctx, c, file, "")
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("open %s: %w", name, chunk.ErrNotRegular)
	}
	if err := c.expect.Sized(info.Size()); err != nil {
		return err
	}
	c.expectSize(info.Size())
	return uploadReader(ctx, c, f)
}

// Bytes uploads data, which must not change before Bytes has returned. Up to 8 MiB
// are sent in one request. More bytes get a session, which no other call can resume,
// because it is not saved in [Options.Store].
func (u *Uploader) Bytes(ctx context.Context, data []byte, spec Spec) (*Result, error) {
	c := newCall(ctx, u, spec, u.newBudget())
	return c.finish(ctx, uploadSource(ctx, c, source.FromBytes(data, c.reread), ""))
}
