package source

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/hex"
	"io"
	"strings"

	"gcsup/chunk"
	"gcsup/internal/sourcefile"
	"gcsup/upload/internal/stream"
)

// Part is a file, or a part of a stream, that is sent whole in one request. A file is kept in memory if the
// budget allows it. Otherwise it is read for each request, and hashed while it is sent. The bytes of
// a second request are compared with those of the first.
type Part struct {
	size   int64
	src    *sourcefile.File // nil for a stream
	data   *stream.Buffer   // nil if the bytes are not in memory
	sum    *chunk.PrefixCRC // of the bytes that were read
	reread Reread
}

// Part returns the file as a Part, and reads it if it fits in memory. The caller must call Free.
func (f *File) Part(ctx context.Context, memory *stream.Memory) (*Part, error) {
	p := &Part{size: f.Total(), src: f.src, reread: f.reread}
	p.data, p.sum = memory.NewBuffer(p.size), chunk.NewPrefixCRC(chunk.Checkpoint{})
	if p.data == nil {
		return p, nil
	}
	for at, piece := range p.data.Pieces() {
		err := context.Cause(ctx)
		if err == nil {
			err = f.src.ReadFull(piece, at)
		}
		if err == nil {
			_, err = p.sum.Write(piece)
		}
		if err != nil {
			p.Free()
			return nil, err
		}
	}
	return p, nil
}

// Free returns the memory to the budget.
func (p *Part) Free() {
	if p.data != nil {
		p.data.Free()
	}
}

// CRC32C returns the checksum of the bytes. It is known after all of them were read once.
func (p *Part) CRC32C() (crc32c uint32, known bool) {
	last, _ := p.sum.Nearest(p.size)
	return last.CRC32C, last.Offset == p.size
}

// Hash makes the checksum known. It reads the bytes if necessary. The error is that of the source, or the
// cause of ctx.
func (p *Part) Hash(ctx context.Context) error {
	if _, known := p.CRC32C(); known {
		return nil
	}
	if err := p.readAll(ctx, io.Discard); err != nil {
		return err
	}
	p.reread(p.size, p.size, p.size)
	return nil
}

// readAll writes all bytes to w. The error is that of the source, or the cause of ctx.
func (p *Part) readAll(ctx context.Context, w io.Writer) error {
	body, finish := p.Open()
	_, err := io.Copy(w, untilDone{ctx, body})
	if finished := finish(); finished != nil {
		return finished
	}
	return err
}

// untilDone reads from r until ctx is done. A part may have 5 GiB.
type untilDone struct {
	ctx context.Context
	r   io.Reader
}

func (u untilDone) Read(p []byte) (int, error) {
	if u.ctx.Err() != nil {
		return 0, context.Cause(u.ctx)
	}
	return u.r.Read(p)
}

// Open returns a reader of the bytes. The caller must call finish after reading. It
// returns the error of the source, or nil.
func (p *Part) Open() (body io.Reader, finish func() error) {
	if p.data != nil {
		return p.data.Reader(), func() error { return nil }
	}
	p.sum.Rewind(0)
	whole := p.src.Body(chunk.Range{To: p.size}, p.sum)
	return whole, whole.Finish
}

// HasETag reports whether etag is the MD5 of the bytes. It is false if etag is not an MD5. After it
// has read the bytes, their checksum is known. The error is that of the source, or the cause of ctx.
func (p *Part) HasETag(ctx context.Context, etag string) (bool, error) {
	want, err := hex.DecodeString(strings.Trim(etag, `"`))
	if err != nil || len(want) != md5.Size {
		return false, nil
	}
	h := md5.New()
	if err := p.readAll(ctx, h); err != nil {
		return false, err
	}
	return bytes.Equal(h.Sum(nil), want), nil
}
