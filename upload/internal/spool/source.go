package spool

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"gcsup/chunk"
	"gcsup/session"
	"gcsup/upload/internal/content"
)

// firstBody is the number of bytes for which the first request waits. Later ones carry what
// was read meanwhile.
const firstBody = 16 << 20

// Source is the content of the object: the bytes of a spool.
type Source struct {
	spool *Spool
	sum   *chunk.PrefixCRC
	whole *chunk.Checkpoint // set when Next has reached the end of the input
}

var _ content.Source = (*Source)(nil)

// NewSource returns the content of a stream that begins or, after [Open], continues. A stream that
// continues needs Seek, unless its session is new.
func NewSource(s *Spool) *Source {
	return &Source{spool: s, sum: chunk.NewPrefixCRC(chunk.Checkpoint{}), whole: s.Status().End}
}

// Total returns the size. It is known when the end is sent, and not when the input ends, which
// may be during a request.
func (s *Source) Total() int64 {
	if s.whole == nil {
		return -1
	}
	return s.whole.Offset
}

func (s *Source) Replayable() bool { return s.spool.Status().From == 0 }

func (s *Source) Restart() { s.sum = chunk.NewPrefixCRC(chunk.Checkpoint{}) }

// Seek makes the checksum start at the offset that the service has committed.
func (s *Source) Seek(ctx context.Context, offset int64) error {
	offset = chunk.Floor(offset)
	from, ok := s.spool.base(offset)
	if !ok {
		return fmt.Errorf("%w: the service has %d bytes, and the bytes after them are gone from %s", ErrDamaged, offset, s.spool.path)
	}
	to, err := s.hash(ctx, from, offset)
	if err != nil {
		return err
	}
	s.sum = chunk.NewPrefixCRC(to)
	return nil
}

func (s *Source) hash(ctx context.Context, from chunk.Checkpoint, to int64) (chunk.Checkpoint, error) {
	return chunk.FromReaderAt(s.spool, to).Hash(ctx, from, to)
}

// Next returns all whole granules that were read, and then the tail, as for a file. At least one byte of the stream is
// not sent before the end of the input is known, so that the last request has the checksum.
func (s *Source) Next(ctx context.Context, offset, limit int64) (content.Body, error) {
	if offset == 0 {
		s.Restart()
	}
	most := s.spool.limit / 2 // so that the input continues meanwhile
	now, err := s.spool.Await(ctx, func(now Status) bool {
		ready := now.Sendable - offset
		return now.End != nil || ready >= min(firstBody, limit, most/2) || now.Waits != "" && ready > 0
	})
	if err != nil {
		return content.Body{}, err
	}
	if offset < now.From {
		return content.Body{}, fmt.Errorf("%w: the server requests byte %d, which it had committed", session.ErrProtocol, offset)
	}
	if now.End != nil {
		s.whole, most = now.End, limit
	}
	to := now.Sendable
	if offset >= to {
		return s.tail(offset)
	}
	if end := chunk.Floor(offset + min(limit, most)); end < to {
		to = end
	}
	from := offset
	if to-from < chunk.Granularity {
		// The service accepts no less in a request that is not the last. It ignores bytes that
		// it already has.
		from, to = chunk.Floor(offset), max(to, chunk.Floor(offset)+chunk.Granularity)
	}
	return s.body(chunk.Range{From: from, To: to}), nil
}

func (s *Source) body(rng chunk.Range) content.Body {
	s.sum.Rewind(rng.From)
	body := chunk.FromReaderAt(s.spool, rng.To).Body(rng, s.sum)
	return content.Body{Range: rng, Reader: body, Stop: body.Finish}
}

// tail returns the last body.
func (s *Source) tail(offset int64) (content.Body, error) {
	b := s.body(chunk.Range{From: offset, To: s.whole.Offset})
	data := make([]byte, b.Len())
	_, err := io.ReadFull(b, data)
	if finished := b.Finish(); err == nil {
		err = finished
	}
	if err == nil && s.sum.Sum() != s.whole.CRC32C {
		err = fmt.Errorf("%w: %w: its bytes have another checksum than those that were read (%s)", chunk.ErrRead, ErrDamaged, s.spool.path)
	}
	return content.Body{Range: b.Range, Reader: bytes.NewReader(data), Last: true, CRC32C: s.sum.Sum()}, err
}

// Committed removes the bytes that the service has from the disk.
func (s *Source) Committed(offset int64) {
	s.sum.Forget(chunk.Floor(offset))
	s.spool.Release(offset)
}

func (s *Source) Whole(context.Context) (chunk.Checkpoint, error) {
	if s.whole == nil {
		return chunk.Checkpoint{}, fmt.Errorf("%w: the object is finished and the stream is not", session.ErrUnexpectedData)
	}
	return *s.whole, nil
}

// Compare compares only a CRC32C. Without reread it reads less than 256 KiB.
func (s *Source) Compare(ctx context.Context, p content.Prefix, reread bool) (content.Verdict, error) {
	if p.CRC32C == nil {
		return content.Unknown, nil
	}
	from, ok := s.sum.Nearest(p.Offset)
	if reread && (!ok || from.Offset < s.spool.Status().From) {
		from, ok = s.spool.base(p.Offset)
	}
	if !ok || !reread && p.Offset-from.Offset >= chunk.Granularity {
		return content.Unknown, nil
	}
	ours, err := s.hash(ctx, from, p.Offset)
	switch {
	case err != nil:
		return content.Unknown, err
	case ours.CRC32C == *p.CRC32C:
		return content.Same, nil
	}
	return content.Different, nil
}

func (s *Source) Changed(context.Context, int64) error { return nil }
