package chunk

import (
	"context"
	"fmt"
	"io/fs"
)

// HeadSize is the number of bytes that [Stream.Head] returns. It is the number
// that [net/http.DetectContentType] considers.
const HeadSize = 512

// Head waits for the first HeadSize bytes of the stream and returns a copy. They
// are fewer if the stream ends before, or if the reader fails, which Next reports.
// Head does not wait for a whole part. It must be called at most once, before the
// first Next.
func (s *Stream) Head(ctx context.Context) ([]byte, error) {
	if s.streamReader == nil { // the zero Stream
		return nil, fmt.Errorf("stream: %w", fs.ErrClosed)
	}
	select {
	case <-s.stop:
		return nil, fmt.Errorf("stream: %w", fs.ErrClosed)
	default:
	}
	s.start()
	select {
	case <-s.stop:
		return nil, fmt.Errorf("stream: %w", fs.ErrClosed)
	case <-ctx.Done():
		return nil, fmt.Errorf("stream: %w", context.Cause(ctx))
	case head := <-s.head:
		return head, nil
	}
}
