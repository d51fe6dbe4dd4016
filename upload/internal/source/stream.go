package source

import (
	"context"
	"fmt"
	"io"

	"gcsup/chunk"
	"gcsup/session"
	"gcsup/upload/internal/content"
	"gcsup/upload/internal/stream"
)

// Stream is a source that cannot be read again. Bytes that the server has not
// committed are kept in a window.
type Stream struct {
	stream *stream.Stream
	zipped *gzipReader  // nil unless the stream is compressed
	cur    *stream.Part // nil before the first window, and between two
	done   int64        // committed: all windows before this offset were released
}

var _ content.Source = (*Stream)(nil)

// NewStream returns the stream of the bytes of r, with windows of at most window bytes
// of memory. The caller must close it.
func NewStream(r io.Reader, memory *stream.Memory, window int) (*Stream, error) {
	stream, err := memory.NewStream(r, window)
	return &Stream{stream: stream}, err
}

// NewStream is NewStream for bytes that are compressed while they are sent.
func (c Compressor) NewStream(r io.Reader, memory *stream.Memory, window int) (*Stream, error) {
	zipped := c.reader(r)
	stream, err := memory.NewStream(zipped, window)
	return &Stream{stream: stream, zipped: zipped}, err
}

// Close waits until the last read of the stream's reader returns, and frees the
// memory.
func (s *Stream) Close() {
	if s.zipped != nil {
		s.zipped.stop() // before Close, which waits for Read
	}
	_ = s.stream.Close() // always nil
	s.stream.Release()
}

// Head returns the first bytes before compression. whole reports whether the stream
// ends within 256 KiB.
func (s *Stream) Head(ctx context.Context) (first []byte, whole bool, err error) {
	first, whole, err = s.stream.Head(ctx)
	if err == nil && s.zipped != nil {
		first = s.zipped.head // nothing is read until Next is called
	}
	return first[:min(len(first), content.HeadSize)], whole, err
}

// Load returns a stream that ends within its first window.
func (s *Stream) Load(ctx context.Context) (content.Loaded, error) {
	if err := s.fill(ctx); err != nil {
		return content.Loaded{}, err
	}
	return s.loaded(), nil
}

// loaded returns the current window, which must be the whole stream.
func (s *Stream) loaded() content.Loaded {
	cur := *s.cur
	return content.Loaded{Size: cur.To, CRC32C: cur.CRC32C, Open: func() io.Reader { return cur.Reader(0, cur.To) }}
}

// Offsets returns the offsets before compression, after the stream was read. It is nil
// if the stream is not compressed.
func (s *Stream) Offsets() *Offsets {
	if s.zipped == nil {
		return nil
	}
	return &Offsets{size: s.zipped.read, marks: []offsetMark{{made: s.zipped.made, read: s.zipped.read}}}
}

// Hold is [stream.Stream.Hold]. It must be called before all other methods.
func (s *Stream) Hold(ahead, notice int64) (noticed <-chan struct{}) {
	return s.stream.Hold(ahead, notice)
}

// First waits for the first window, and returns its size. whole reports whether the stream ends within it.
func (s *Stream) First(ctx context.Context) (size int64, whole bool, err error) {
	if err := s.fill(ctx); err != nil {
		return 0, false, err
	}
	return s.cur.To, s.cur.Last, nil
}

// Ahead waits for the window that is read ahead, see [stream.Stream.Ahead].
func (s *Stream) Ahead(ctx context.Context) (last bool, err error) { return s.stream.Ahead(ctx) }

// Continue makes the stream continue after Hold.
func (s *Stream) Continue() { s.stream.Continue() }

// Divide makes parts of the stream, of which First has returned the first window. The parts have at least least bytes,
// except the last one. sizes is as in [stream.Stream.Divide].
func (s *Stream) Divide(least int64, sizes stream.Sizes) {
	s.cur = nil
	s.stream.Divide(least, sizes)
}

// NextPart waits for the next part of a divided stream, and returns its range. The caller must call Free. After the
// last part it returns io.EOF.
func (s *Stream) NextPart(ctx context.Context) (*Part, chunk.Range, error) {
	next, err := s.stream.NextSection(ctx)
	if err != nil {
		return nil, chunk.Range{}, err
	}
	sum := chunk.NewPrefixCRC(chunk.Checkpoint{Offset: next.Len(), CRC32C: next.CRC32C})
	return &Part{size: next.Len(), data: next.Buffer, sum: sum}, next.Range, nil
}

func (s *Stream) Total() int64 {
	if s.cur != nil && s.cur.Last {
		return s.cur.To
	}
	return -1
}

func (s *Stream) Replayable() bool {
	return s.done == 0 && (s.cur == nil || s.cur.From == 0)
}

func (s *Stream) Restart() {} // all bytes are in the current window

// fill waits for the next window.
func (s *Stream) fill(ctx context.Context) error {
	if s.cur != nil {
		return nil
	}
	next, err := s.stream.Next(ctx)
	if err == nil {
		s.cur = &next
	}
	return err
}

func (s *Stream) Next(ctx context.Context, offset, limit int64) (content.Body, error) {
	if err := s.fill(ctx); err != nil {
		return content.Body{}, err
	}
	if offset < s.cur.From || offset > s.cur.To {
		return content.Body{}, committedBefore(offset)
	}
	b := content.Body{Range: chunk.Range{From: offset, To: s.cur.To}, Last: s.cur.Last, CRC32C: s.cur.CRC32C}
	to := chunk.Floor(offset + limit)
	if to-offset < chunk.Granularity {
		to += chunk.Granularity // as for a file: the service does not accept less
	}
	if to < b.To {
		b.To, b.Last = to, false
	}
	if !b.Last && b.Len() < chunk.Granularity {
		// The rest of the window is less than the service accepts in a request that is not
		// the last. The service ignores bytes that it already has.
		b.From = chunk.Floor(offset)
	}
	b.Reader = s.cur.Reader(b.From, b.To)
	return b, nil
}

// committedBefore is the error for a server that requests bytes which are no longer kept.
func committedBefore(offset int64) error {
	return fmt.Errorf("%w: the server requests byte %d, which it had committed", session.ErrProtocol, offset)
}

func (s *Stream) Committed(offset int64) {
	if s.cur != nil && offset == s.cur.To && !s.cur.Last {
		s.done = offset
		s.cur = nil
		s.stream.Release()
	}
}

func (s *Stream) Whole(context.Context) (chunk.Checkpoint, error) {
	if s.Total() < 0 {
		return chunk.Checkpoint{}, fmt.Errorf("%w: the object is finished and the stream is not", session.ErrUnexpectedData)
	}
	return chunk.Checkpoint{Offset: s.cur.To, CRC32C: s.cur.CRC32C}, nil
}

// holds reports whether an offset is in the current window.
func (s *Stream) holds(offset int64) bool {
	return s.cur != nil && s.cur.From <= offset && offset <= s.cur.To
}

func (s *Stream) Compare(_ context.Context, p content.Prefix, _ bool) (content.Verdict, error) {
	switch {
	case !s.holds(p.Offset):
		return content.Unknown, nil
	case p.CRC32C != nil:
		return verdict(s.cur.Checkpoint(p.Offset).CRC32C == *p.CRC32C), nil
	case p.MD5 != nil && s.cur.From == 0:
		ours, err := MD5(s.cur.Reader(0, p.Offset), p.Offset)
		if err != nil {
			return content.Unknown, err
		}
		return verdict(ours == *p.MD5), nil
	}
	return content.Unknown, nil
}

func (s *Stream) Changed(context.Context, int64) error { return nil }
