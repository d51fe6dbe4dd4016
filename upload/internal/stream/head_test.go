package stream_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"

	"gcsup/chunk"
	"gcsup/internal/require"
	"gcsup/upload/internal/stream"
)

func TestStreamHead(t *testing.T) {
	failing := func(n int64) io.Reader {
		return io.MultiReader(bytes.NewReader(content(n)), iotest.ErrReader(io.ErrUnexpectedEOF))
	}
	plain := func(n int64) io.Reader { return bytes.NewReader(content(n)) }
	for _, c := range []struct {
		name  string
		r     io.Reader
		want  int64
		whole bool
		err   error
	}{
		{"empty", plain(0), 0, true, nil},
		{"short", plain(3), 3, true, nil},
		{"one byte at a time", iotest.OneByteReader(plain(2000)), 2000, true, nil},
		{"a piece", plain(q), q, true, nil},
		{"a piece, with its error", iotest.DataErrReader(plain(q)), q, true, nil},
		{"a byte more", plain(q + 1), q, false, nil},
		{"long", plain(3 * q), q, false, nil},
		{"fails", failing(3), 0, false, chunk.ErrRead},
		{"fails after a piece", failing(q), 0, false, chunk.ErrRead},
	} {
		s, err := new(stream.Memory).NewStream(c.r, 2*chunk.Granularity)
		require.NoError(t, err)
		first, whole, err := s.Head(t.Context())
		if !bytes.Equal(first, content(c.want)) || whole != c.whole || !errors.Is(err, c.err) {
			t.Errorf("%s: %d bytes, whole %v, %v; want %d, %v, %v", c.name, len(first), whole, err, c.want, c.whole, c.err)
		}
		part, err := s.Next(t.Context())
		if !errors.Is(err, c.err) || err == nil && part.To < min(c.want, 2*q) {
			t.Errorf("%s: Next: %v, last %v, %v, want %v", c.name, part.Range, part.Last, err, c.err)
		}
		s.Close()
		s.Release()
	}
}

// TestStreamReadsNothingAfterTheHead checks that a stream reads its first piece and
// one byte until Next asks for more.
func TestStreamReadsNothingAfterTheHead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := bytes.NewReader(content(5 * q))
		s, err := new(stream.Memory).NewStream(src, 0)
		require.NoError(t, err)
		defer s.Close()
		if _, whole, err := s.Head(t.Context()); whole || err != nil {
			t.Errorf("Head = %v, %v", whole, err)
		}
		synctest.Wait()
		if got := 5*q - src.Len(); got != q+1 {
			t.Errorf("%d bytes are read, want %d", got, q+1)
		}
		if part, err := s.Next(t.Context()); err != nil || !part.Last || part.To != 5*q {
			t.Errorf("Next = %v, %v", part.Range, err)
		}
	})
}

// TestStreamHeadDoesNotWaitForAWindow checks that the head of a slow stream is
// returned at once, and that a wait for it can be canceled.
func TestStreamHeadDoesNotWaitForAWindow(t *testing.T) {
	r, w := io.Pipe()
	defer w.Close()
	s, err := new(stream.Memory).NewStream(r, 0)
	require.NoError(t, err)
	defer s.Close()
	defer w.Close() // before Close of s, which waits for the Read
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := s.Head(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	go func() { _, _ = w.Write(make([]byte, q+1)) }()
	if first, whole, err := s.Head(t.Context()); len(first) != q || whole || err != nil {
		t.Errorf("%d bytes, whole %v, %v", len(first), whole, err)
	}
	closed, err := new(stream.Memory).NewStream(strings.NewReader("x"), 0)
	require.NoError(t, err)
	closed.Close()
	if _, _, err := closed.Head(t.Context()); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
	if _, _, err := new(stream.Stream).Head(t.Context()); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("zero: %v", err)
	}
}
