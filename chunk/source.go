package chunk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"gcsup/internal/checksum"
	"gcsup/internal/regular"
)

// Source is content that can be read at any offset and more than once. The zero
// value is empty. A Source is safe for concurrent use.
type Source struct {
	r    io.ReaderAt
	size int64
	file *os.File // nil for FromReaderAt
}

// Open opens the regular file at path. If it does not exist, or the operating system does
// not open it, the error wraps [ErrOpen]. If it is not a regular file, or has more
// content than its size, as files in /proc have, the error wraps [ErrNotRegular] and
// contains advice. Open never blocks on a named pipe.
func Open(path string) (*Source, error) {
	f, err := regular.Open(path)
	if err != nil {
		return nil, err
	}
	size, _, err := regular.Examine(f, path)
	if err != nil {
		f.Close()
		return nil, err
	}
	return &Source{r: f, size: size, file: f}, nil
}

// FromReaderAt returns the first size bytes of r as a Source. r must always
// return the same bytes.
// FromReaderAt panics if size is negative.
func FromReaderAt(r io.ReaderAt, size int64) *Source {
	if size < 0 {
		panic(fmt.Sprintf("chunk: FromReaderAt: negative size %d", size))
	}
	return &Source{r: r, size: size}
}

// Size returns the number of bytes in the source when it was opened.
func (s *Source) Size() int64 { return s.size }

// Identity returns the current identity of the open file, whatever its path names now. For
// [FromReaderAt] it has only the size.
func (s *Source) Identity() (Identity, error) {
	if s.file == nil {
		return Identity{Size: s.size}, nil
	}
	info, err := s.file.Stat()
	if err != nil {
		return Identity{}, fmt.Errorf("identity: %w: %w", ErrRead, err)
	}
	id, err := regular.Identify(s.file, info)
	if err != nil {
		return Identity{}, fmt.Errorf("identity: %w: %w", ErrRead, err)
	}
	return Identity(id), nil
}

// ReadAt implements [io.ReaderAt]. The source ends at [Source.Size], even if
// the file has grown.
func (s *Source) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, fmt.Errorf("read: negative offset %d", off)
	}
	if off >= s.size {
		return 0, io.EOF
	}
	left := s.size - off
	if int64(len(p)) <= left {
		return s.r.ReadAt(p, off)
	}
	n, err := s.r.ReadAt(p[:left], off)
	if err == nil {
		err = io.EOF
	}
	return n, err
}

// ReadFull fills p from off. Its error wraps [ErrChanged] if the source is too short,
// and [ErrRead] if it cannot be read. It also returns an error that the source returns
// together with all bytes, for example a wrong checksum at the end.
func (s *Source) ReadFull(p []byte, off int64) error {
	n, err := s.ReadAt(p, off)
	ended := err == nil || errors.Is(err, io.EOF)
	switch {
	case n == len(p) && ended:
		return nil
	case ended || n < len(p) && errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("read: source ends at byte %d, before %d: %w: %w",
			off+int64(n), off+int64(len(p)), ErrChanged, io.ErrUnexpectedEOF)
	}
	return fmt.Errorf("read: at byte %d: %w: %w", off+int64(n), ErrRead, err)
}

// Hash continues c with the bytes of the source before the offset to, and returns the
// new checkpoint. The error wraps [ErrChanged] if the source ends before, [ErrRead] if
// the source cannot be read, or the cause of ctx.
func (s *Source) Hash(ctx context.Context, c Checkpoint, to int64) (Checkpoint, error) {
	if c.Offset < 0 || to < c.Offset {
		return Checkpoint{}, fmt.Errorf("hash: invalid range from %d to %d", c.Offset, to)
	}
	buf, done := hashBuffer(to - c.Offset)
	defer done()
	for c.Offset < to {
		if ctx.Err() != nil {
			return Checkpoint{}, fmt.Errorf("hash: %w", context.Cause(ctx))
		}
		p := buf[:min(int64(len(buf)), to-c.Offset)]
		if err := s.ReadFull(p, c.Offset); err != nil {
			return Checkpoint{}, fmt.Errorf("hash: %w", err)
		}
		c = Checkpoint{c.Offset + int64(len(p)), checksum.Update(c.CRC32C, p)}
	}
	return c, nil
}

// smallBuffers has the buffers that hash a short piece, so that many small files
// need little memory.
var smallBuffers = sync.Pool{New: func() any { return new([64 << 10]byte) }}

// hashBuffer returns a buffer to hash n bytes. The caller must call done.
func hashBuffer(n int64) (buf []byte, done func()) {
	if n <= 64<<10 {
		b := smallBuffers.Get().(*[64 << 10]byte)
		return b[:], func() { smallBuffers.Put(b) }
	}
	b := buffers.Get().(*buffer)
	return b[:], func() { buffers.Put(b) }
}

// Close closes the file that [Open] opened. The argument of [FromReaderAt] stays open.
func (s *Source) Close() error {
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}
