package upload

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"io"

	"gcsup/session"
	"gcsup/upload/internal/content"
	"gcsup/upload/internal/engine"
	"gcsup/upload/internal/source"
)

// smallLimit is the maximum size of a file that is sent in one request. The request
// cannot be resumed, but carries the checksum.
const smallLimit = 8 << 20

// small reports whether the file is sent in a single request.
func (j *job) small() bool { return j.u.single(j.file.Total()) }

// single reports whether a file of that size is sent in a single request.
func (u *Uploader) single(size int64) bool {
	for _, limit := range []int64{u.opts.ChunkSize, u.opts.CommitEvery.Bytes} {
		if limit > 0 && size > limit {
			return false
		}
	}
	return size <= smallLimit
}

// compress makes the source that is sent the compressed file, or the file itself, as the Spec
// requires.
func (j *job) compress() {
	switch zipped, compressed := j.source.(*source.Gzip); {
	case j.spec.Gzip && !compressed:
		zipped = source.NewGzip(j.file, j.u.compressor, j.u.memory, j.u.opts.Window)
		j.source = zipped
		j.progress.source.Store(zipped.Offsets())
		j.requests.Pos.Size.Store(-1)
		j.expect.Size = nil // it is the size of the file, which was checked
	case !j.spec.Gzip && compressed:
		zipped.Stop()
		j.source = j.file
		j.progress.source.Store(nil)
		j.requests.Pos.Size.Store(j.file.Total())
	}
}

// insert uploads the whole of src, which is in memory, in a single request.
func (j *job) insert(ctx context.Context, src content.Source, c content.Loaded) error {
	if err := engine.ExpectCRC32C(j.spec, c.CRC32C); err != nil {
		return err
	}
	if err := expectMD5(j.spec, c.Open(), c.Size); err != nil {
		return err
	}
	i := engine.NewInsertion(j.newTransfer(src, engine.Unrecorded{}, nil), c, j.seen, func() {
		j.result.update(func(r *Result) { r.Skipped = SkipIdentical })
	})
	return j.finishSession(ctx, nil, j.make(ctx, i))
}

// expectMD5 compares the MD5 of n bytes with the one that the caller expects.
func expectMD5(spec Spec, r io.Reader, n int64) error {
	want := spec.MD5
	if want == nil {
		return nil
	}
	sum, err := source.MD5(r, n)
	if err != nil {
		return err
	}
	if sum == [md5.Size]byte(want) {
		return nil
	}
	return fmt.Errorf("%w: the source has MD5 %x, expected is %s", session.ErrChecksum, sum, hex.EncodeToString(want))
}
