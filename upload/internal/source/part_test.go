package source

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"

	"gcsup/internal/require"
	"gcsup/upload/internal/stream"
)

// endingReader cancels a context when its bytes are read.
type endingReader struct {
	io.ReaderAt
	read int
	end  func()
}

func (r *endingReader) ReadAt(p []byte, off int64) (int, error) {
	r.end()
	n, err := r.ReaderAt.ReadAt(p, off)
	r.read += n
	return n, err
}

// TestPartCanceled checks that a part that is only read, and not sent, is not read to its end after a
// cancellation.
func TestPartCanceled(t *testing.T) {
	t.Parallel()
	const size = 64 << 20
	stopped := errors.New("stopped")
	for name, read := range map[string]func(context.Context, *Part) error{
		"hashed": func(ctx context.Context, p *Part) error { return p.Hash(ctx) },
		"compared": func(ctx context.Context, p *Part) error {
			_, err := p.HasETag(ctx, "0123456789abcdef0123456789abcdef")
			return err
		},
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		r := &endingReader{ReaderAt: bytes.NewReader(make([]byte, size)), end: func() { cancel(stopped) }}
		p, err := FromReaderAt(r, size, func(int64, int64, int64) {}).Part(t.Context(), stream.NewMemory(1))
		require.NoError(t, err)
		if err := read(ctx, p); !errors.Is(err, stopped) || r.read >= size {
			t.Errorf("%s: %v after %d bytes of %d", name, err, r.read, size)
		}
		p.Free()
	}
}
