package source

import (
	"context"
	"fmt"

	"gcsup/chunk"
	"gcsup/internal/checksum"
	"gcsup/session"
	"gcsup/upload/internal/content"
)

// FileThenStream is a file followed by a stream. The last bytes of the file become
// the start of the stream. Until then the file can be read again.
type FileThenStream struct {
	file   *File
	stream *Stream
	tail   chan<- []byte
	base   int64 // offset of the stream in the object; a multiple of 256 KiB

	// passed reports that tail was sent. The file is not read afterwards.
	passed bool
	crc32c uint32 // of the bytes before base; valid if passed
}

var _ content.Source = (*FileThenStream)(nil)

// NewFileThenStream returns the content of a file and of a stream. When the bytes of the
// file are committed, except the last ones, at most 256 KiB, it sends these to tail. They
// must become the first bytes of the stream.
func NewFileThenStream(file *File, stream *Stream, tail chan<- []byte) *FileThenStream {
	return &FileThenStream{file: file, stream: stream, tail: tail, base: chunk.LastBoundary(file.Total())}
}

func (f *FileThenStream) Total() int64 {
	if n := f.stream.Total(); n >= 0 {
		return f.base + n
	}
	return -1
}

func (f *FileThenStream) Replayable() bool { return !f.passed }
func (f *FileThenStream) Restart()         {} // Next restarts the file

func (f *FileThenStream) Next(ctx context.Context, offset, limit int64) (content.Body, error) {
	if left := f.base - offset; left > 0 {
		if left < chunk.Granularity {
			// The rest is less than the service accepts in a request that is not the last. The
			// service ignores bytes that it already has.
			offset = chunk.Floor(offset)
		}
		return f.file.Next(ctx, offset, limit)
	}
	if err := f.pass(ctx); err != nil {
		return content.Body{}, err
	}
	b, err := f.stream.Next(ctx, offset-f.base, limit)
	if err != nil {
		return content.Body{}, err
	}
	b.From, b.To = b.From+f.base, b.To+f.base
	if b.Last {
		b.CRC32C = checksum.Combine(f.crc32c, b.CRC32C, b.To-f.base)
	}
	return b, nil
}

// pass sends the end of the file to the stream. All bytes before it are committed.
func (f *FileThenStream) pass(ctx context.Context) error {
	if f.passed {
		return nil
	}
	tail := make([]byte, f.file.Total()-f.base)
	if err := f.file.src.ReadFull(tail, f.base); err != nil {
		return err
	}
	// The last body need not have reached base, because the service may commit bytes of
	// an earlier request late.
	at, ok := f.file.sum.Nearest(f.base)
	if !ok || at.Offset != f.base {
		return fmt.Errorf("%w: %d bytes are committed of %d that were read", session.ErrUnexpectedData, f.base, at.Offset)
	}
	whole := chunk.Checkpoint{Offset: f.file.Total(), CRC32C: checksum.Update(at.CRC32C, tail)}
	if err := f.file.Unchanged(ctx, func() chunk.Checkpoint { return whole }); err != nil {
		return err
	}
	f.passed, f.crc32c = true, at.CRC32C
	f.tail <- tail
	return nil
}

func (f *FileThenStream) Committed(offset int64) {
	if offset <= f.base {
		f.file.Committed(offset)
		return
	}
	f.stream.Committed(offset - f.base)
}

func (f *FileThenStream) Whole(ctx context.Context) (chunk.Checkpoint, error) {
	end, err := f.stream.Whole(ctx)
	if err != nil {
		return end, err
	}
	return chunk.Checkpoint{Offset: f.base + end.Offset, CRC32C: checksum.Combine(f.crc32c, end.CRC32C, end.Offset)}, nil
}

// Compare compares only a CRC32C.
func (f *FileThenStream) Compare(ctx context.Context, p content.Prefix, _ bool) (content.Verdict, error) {
	n := p.Offset - f.base
	switch {
	case p.CRC32C == nil:
		return content.Unknown, nil
	case n <= 0:
		return f.file.Compare(ctx, p, false)
	case f.passed && f.stream.holds(n):
		return verdict(checksum.Combine(f.crc32c, f.stream.cur.Checkpoint(n).CRC32C, n) == *p.CRC32C), nil
	}
	return content.Unknown, nil
}

func (f *FileThenStream) Changed(context.Context, int64) error { return nil }
