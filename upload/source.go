package upload

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"unicode/utf8"

	"gcsup/chunk"
	"gcsup/session"
	"gcsup/upload/internal/source"
)

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
	j := u.newJob(ctx, spec, u.newBudget())
	return j.do(ctx, func(ctx context.Context) error {
		if size < 0 || !utf8.ValidString(identity) {
			return fmt.Errorf("%w: the source has %d bytes and the identity %q", session.ErrInvalid, size, identity)
		}
		return j.uploadSource(ctx, source.FromReaderAt(r, size, j.reread), identity)
	})
}

// FS uploads a file of fsys. A file with a method ReadAt, such as those of [os.DirFS]
// and package embed, is read again if necessary. Another file is uploaded as by
// [Uploader.Reader], and its size is checked: [ErrTruncated]. No other call can
// resume the upload. [Uploader.File] is for files on disk.
func (u *Uploader) FS(ctx context.Context, fsys fs.FS, name string, spec Spec) (*Result, error) {
	j := u.newJob(ctx, spec, u.newBudget())
	return j.do(ctx, func(ctx context.Context) error { return j.uploadFS(ctx, fsys, name) })
}

func (j *job) uploadFS(ctx context.Context, fsys fs.FS, name string) error {
	f, err := fsys.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	if open, ok := f.(chunk.File); ok {
		src, err := chunk.FromFile(open, 0)
		if err != nil {
			return err
		}
		file, err := source.NewFile(src, "the source", j.reread)
		if err != nil {
			return err
		}
		return j.uploadSource(ctx, file, "")
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("open %s: %w", name, chunk.ErrNotRegular)
	}
	if err := j.expect.Sized(info.Size()); err != nil {
		return err
	}
	j.expectSize(info.Size())
	return j.uploadReader(ctx, f)
}

// hashID returns the ID of an upload from its destination and source.
func (u *Uploader) hashID(spec Spec, source ...string) string {
	h := sha256.New()
	for _, field := range append([]string{u.client.Endpoint(), spec.Bucket, spec.Object}, source...) {
		fmt.Fprintf(h, "%d:%s", len(field), field)
	}
	return hex.EncodeToString(h.Sum(nil)[:10])
}

// Bytes uploads data, which must not change before Bytes has returned. Up to 8 MiB
// are sent in one request. More bytes get a session, which no other call can resume,
// because it is not saved in [Options.Store].
func (u *Uploader) Bytes(ctx context.Context, data []byte, spec Spec) (*Result, error) {
	j := u.newJob(ctx, spec, u.newBudget())
	return j.finish(ctx, j.uploadSource(ctx, source.FromBytes(data, j.reread), ""))
}
