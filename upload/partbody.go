package upload

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"io"
	"strings"

	"gcsup/chunk"
	"gcsup/session"
)

// partBody has the bytes of a part of a multipart upload. The bytes are hashed before
// they are sent. They are kept in memory, or read again for each request if the
// memory budget is spent.
type partBody struct {
	src    *chunk.Source // the part
	data   *chunk.Buffer // nil if the bytes are not in memory
	crc32c uint32
}

// readPart reads and hashes a part of a file. The caller must call free.
func readPart(ctx context.Context, src *chunk.Source, memory *chunk.Memory) (*partBody, error) {
	b := &partBody{src: src, data: memory.NewBuffer(src.Size())}
	if b.data == nil {
		sum, err := src.Hash(ctx, chunk.Checkpoint{}, src.Size())
		b.crc32c = sum.CRC32C
		return b, err
	}
	for at, p := range b.data.Pieces() {
		err := context.Cause(ctx)
		if err == nil {
			err = src.ReadFull(p, at)
		}
		if err != nil {
			b.free()
			return nil, err
		}
		b.crc32c = chunk.Update(b.crc32c, p)
	}
	return b, nil
}

// free returns the memory to the budget.
func (b *partBody) free() {
	if b.data != nil {
		b.data.Free()
	}
}

// open returns a reader of the bytes. The caller must call finish after reading. It
// returns the error of the source, or nil.
func (b *partBody) open() (body io.Reader, finish func() error) {
	if b.data != nil {
		return b.data.Reader(), func() error { return nil }
	}
	whole := b.src.Body(chunk.Range{To: b.src.Size()}, nil)
	return whole, whole.Finish
}

// hasETag reports whether etag is the MD5 of the bytes. It is false if etag is not an MD5.
func (b *partBody) hasETag(etag string) (bool, error) {
	want, err := hex.DecodeString(strings.Trim(etag, `"`))
	if err != nil || len(want) != md5.Size {
		return false, nil
	}
	body, finish := b.open()
	sum, err := md5Of(body, b.src.Size())
	if finished := finish(); finished != nil {
		return false, finished
	}
	return err == nil && bytes.Equal(sum[:], want), nil
}

// unchanged is called after the service refused bytes that do not have the checksum. It returns an
// error if the source changed since it was hashed.
func (b *partBody) unchanged(ctx context.Context) error {
	if b.data != nil {
		return nil
	}
	sum, err := b.src.Hash(ctx, chunk.Checkpoint{}, b.src.Size())
	if err == nil && sum.CRC32C != b.crc32c {
		err = fmt.Errorf("%w: a part changed while it was sent", session.ErrSourceChanged)
	}
	return err
}
