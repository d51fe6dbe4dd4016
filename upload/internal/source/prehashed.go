package source

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

// Prehashed is a file whose bytes are hashed before they are sent. They are kept in
// memory, or read again for each request if the memory budget is spent.
type Prehashed struct {
	CRC32C uint32

	src  *chunk.Source
	data *chunk.Buffer // nil if the bytes are not in memory
}

// Prehash reads and hashes the file. The caller must call Free.
func (f *File) Prehash(ctx context.Context, memory *chunk.Memory) (*Prehashed, error) {
	src, size := f.src, f.Total()
	b := &Prehashed{src: src, data: memory.NewBuffer(size)}
	if b.data == nil {
		sum, err := src.Hash(ctx, chunk.Checkpoint{}, size)
		if err == nil {
			f.reread(size, size, size)
		}
		b.CRC32C = sum.CRC32C
		return b, err
	}
	for at, p := range b.data.Pieces() {
		err := context.Cause(ctx)
		if err == nil {
			err = src.ReadFull(p, at)
		}
		if err != nil {
			b.Free()
			return nil, err
		}
		b.CRC32C = chunk.Update(b.CRC32C, p)
	}
	return b, nil
}

// Free returns the memory to the budget.
func (b *Prehashed) Free() {
	if b.data != nil {
		b.data.Free()
	}
}

// Open returns a reader of the bytes. The caller must call finish after reading. It
// returns the error of the source, or nil.
func (b *Prehashed) Open() (body io.Reader, finish func() error) {
	if b.data != nil {
		return b.data.Reader(), func() error { return nil }
	}
	whole := b.src.Body(chunk.Range{To: b.src.Size()}, nil)
	return whole, whole.Finish
}

// HasETag reports whether etag is the MD5 of the bytes. It is false if etag is not an MD5.
func (b *Prehashed) HasETag(etag string) (bool, error) {
	want, err := hex.DecodeString(strings.Trim(etag, `"`))
	if err != nil || len(want) != md5.Size {
		return false, nil
	}
	body, finish := b.Open()
	sum, err := MD5(body, b.src.Size())
	if finished := finish(); finished != nil {
		return false, finished
	}
	return err == nil && bytes.Equal(sum[:], want), nil
}

// Unchanged is called after the service refused bytes that do not have the checksum. It returns an
// error if the source changed since it was hashed.
func (b *Prehashed) Unchanged(ctx context.Context) error {
	if b.data != nil {
		return nil
	}
	sum, err := b.src.Hash(ctx, chunk.Checkpoint{}, b.src.Size())
	if err == nil && sum.CRC32C != b.CRC32C {
		err = fmt.Errorf("%w: a part changed while it was sent", session.ErrSourceChanged)
	}
	return err
}
