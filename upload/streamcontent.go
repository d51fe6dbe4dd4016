package upload

import (
	"context"
	"fmt"
	"io"

	"gcsup/chunk"
	"gcsup/session"
)

// streamContent is a source that cannot be read again. Bytes that the server has not
// committed are kept in a window.
type streamContent struct {
	stream *chunk.Stream
	cur    *chunk.Part // nil before the first part, and between two
	done   int64       // committed: all parts before this offset were released
}

var _ content = (*streamContent)(nil)

// close waits until the last read of the stream's reader returns, and frees the
// memory.
func (s *streamContent) close() {
	_ = s.stream.Close() // always nil
	s.stream.Release()
}

func (s *streamContent) total() int64 {
	if s.cur != nil && s.cur.Last {
		return s.cur.To
	}
	return -1
}

func (s *streamContent) replayable() bool {
	return s.done == 0 && (s.cur == nil || s.cur.From == 0)
}

func (s *streamContent) isCopy() bool { return false }
func (s *streamContent) proven()      {}

func (s *streamContent) part(ctx context.Context, offset, limit int64) (part, error) {
	if s.cur == nil {
		next, err := s.stream.Next(ctx)
		if err != nil {
			return part{}, err
		}
		s.cur = &next
	}
	if offset < s.cur.From || offset > s.cur.To {
		return part{}, fmt.Errorf("%w: the server requests byte %d, which it had committed", session.ErrProtocol, offset)
	}
	p := part{Range: chunk.Range{From: offset, To: s.cur.To}, last: s.cur.Last, crc32c: s.cur.CRC32C, finish: func() error { return nil }}
	to := chunk.Floor(offset + limit)
	if to-offset < chunk.Granularity {
		to += chunk.Granularity // as for a file: the service does not accept less
	}
	if to < p.To {
		p.To, p.last = to, false
	}
	if !p.last && p.Len() < chunk.Granularity {
		// The rest of the window is less than the service accepts in a request that is not
		// the last. The service ignores bytes that it already has.
		p.From = chunk.Floor(offset)
	}
	p.body = s.cur.Reader(p.From, p.To)
	return p, nil
}

func (s *streamContent) committed(offset int64) {
	if s.cur != nil && offset == s.cur.To && !s.cur.Last {
		s.done = offset
		s.cur = nil
		s.stream.Release()
	}
}

func (s *streamContent) whole(context.Context) (uint32, error) {
	if s.total() < 0 {
		return 0, fmt.Errorf("%w: the object is finished and the stream is not", session.ErrUnexpectedData)
	}
	return s.cur.CRC32C, nil
}

func (s *streamContent) prefix(offset int64) (uint32, bool) {
	if s.cur == nil || offset < s.cur.From || offset > s.cur.To {
		return 0, false
	}
	return s.cur.Checkpoint(offset).CRC32C, true
}

func (s *streamContent) head(_ context.Context, offset int64) io.Reader {
	if s.cur == nil || s.cur.From != 0 || offset > s.cur.To {
		return nil
	}
	return s.cur.Reader(0, offset)
}

func (s *streamContent) unchanged(context.Context) error { return nil }
