package stream_test

import (
	"errors"
	"io/fs"
	"testing"

	"gcsup/chunk"
	"gcsup/upload/internal/stream"
)

// TestZeroValues checks that the zero value of each type works as documented.
func TestZeroValues(t *testing.T) {
	var s stream.Stream
	if _, err := s.Next(t.Context()); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("zero Stream: Next: %v, want fs.ErrClosed", err)
	}
	s.Release()
	if err := s.Close(); err != nil {
		t.Errorf("zero Stream: Close: %v", err)
	}

	var part stream.Part
	if len(bytesOf(part, 0, 0)) != 0 || part.Checkpoint(0) != (chunk.Checkpoint{}) {
		t.Errorf("zero Part: %d bytes, checkpoint %v", len(bytesOf(part, 0, 0)), part.Checkpoint(0))
	}
}
