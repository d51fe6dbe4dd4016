package stream

import (
	"context"
	"fmt"
	"io/fs"
)

// head is the beginning of a stream.
type head struct {
	first []byte // at most Granularity bytes
	whole bool   // first is all of the stream
	err   error
}

// Head waits until the stream has more than [chunk.Granularity] bytes, or ends. It
// returns the first Granularity bytes, or all of the stream if whole is true. They
// are valid as long as the first part. If the reader fails, Head returns the error
// that Next would return.
//
// After Head the stream reads nothing until Next is called. Head must be called at
// most once, before the first Next.
func (s *Stream) Head(ctx context.Context) (first []byte, whole bool, err error) {
	if s.streamReader == nil { // the zero Stream
		return nil, false, fmt.Errorf("stream: %w", fs.ErrClosed)
	}
	select {
	case <-s.stop:
		return nil, false, fmt.Errorf("stream: %w", fs.ErrClosed)
	default:
	}
	s.start()
	select {
	case <-s.stop:
		return nil, false, fmt.Errorf("stream: %w", fs.ErrClosed)
	case <-ctx.Done():
		return nil, false, fmt.Errorf("stream: %w", context.Cause(ctx))
	case h := <-s.head:
		if h.err != nil {
			return nil, false, h.err
		}
		return h.first, h.whole, nil
	}
}
