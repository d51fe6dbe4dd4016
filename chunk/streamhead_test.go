package chunk_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"strings"
	"testing"
	"testing/iotest"

	"gcsup/chunk"
)

func TestStreamHead(t *testing.T) {
	long := strings.Repeat("0123456789", 100_000)
	for _, c := range []struct {
		name string
		r    io.Reader
		want string
		err  error // of Next
	}{
		{"empty", strings.NewReader(""), "", nil},
		{"short", strings.NewReader("abc"), "abc", nil},
		{"one byte at a time", iotest.OneByteReader(strings.NewReader(long[:2000])), long[:chunk.HeadSize], nil},
		{"long", strings.NewReader(long), long[:chunk.HeadSize], nil},
		{"fails", io.MultiReader(strings.NewReader("abc"), iotest.ErrReader(io.ErrUnexpectedEOF)), "abc", chunk.ErrRead},
	} {
		s, err := chunk.NewStream(c.r, chunk.Granularity)
		if err != nil {
			t.Fatal(err)
		}
		head, err := s.Head(t.Context())
		if string(head) != c.want || err != nil {
			t.Errorf("%s: %d bytes, %v, want %d", c.name, len(head), err, len(c.want))
		}
		part, err := s.Next(t.Context())
		if !errors.Is(err, c.err) || err == nil && !bytes.HasPrefix(part.Bytes(0, part.To), head) {
			t.Errorf("%s: Next: %v, want %v", c.name, err, c.err)
		}
		s.Close()
	}
}

// TestStreamHeadDoesNotWaitForAWindow checks that the head of a slow stream is
// returned at once, and that a wait for it can be cancelled.
func TestStreamHeadDoesNotWaitForAWindow(t *testing.T) {
	r, w := io.Pipe()
	defer w.Close()
	s, err := chunk.NewStream(r, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	defer w.Close() // before Close of s, which waits for the Read
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Head(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	go func() { _, _ = w.Write(make([]byte, chunk.HeadSize)) }()
	if head, err := s.Head(t.Context()); len(head) != chunk.HeadSize || err != nil {
		t.Errorf("%d bytes, %v", len(head), err)
	}
	closed, err := chunk.NewStream(strings.NewReader("x"), 0)
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	if _, err := closed.Head(t.Context()); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
	if _, err := new(chunk.Stream).Head(t.Context()); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("zero: %v", err)
	}
}
