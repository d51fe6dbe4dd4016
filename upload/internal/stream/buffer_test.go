package stream_test

import (
	"bytes"
	"io"
	"testing"
	"testing/iotest"

	"gcsup/upload/internal/stream"
)

// TestBuffer checks that a buffer has the bytes that were put into its pieces, at sizes
// around that of a piece.
func TestBuffer(t *testing.T) {
	for _, size := range []int64{0, 1, q - 1, q, q + 1, 3*q + 5} {
		m := stream.NewMemory(8 * mib)
		b := m.NewBuffer(size)
		want := content(size)
		end := int64(0)
		for at, p := range b.Pieces() {
			end = at + int64(copy(p, want[at:]))
		}
		if end != size {
			t.Errorf("pieces of %d bytes end at %d", size, end)
		}
		if err := iotest.TestReader(b.Reader(), want); err != nil {
			t.Errorf("%d bytes: %v", size, err)
		}
		if got, err := io.ReadAll(b.Reader()); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d bytes are read as %d others, %v", size, len(got), err)
		}
		b.Free()
		if used, _ := m.Used(); used != 0 {
			t.Errorf("%d bytes are in use after Free", used)
		}
	}
}

// TestBufferBudget checks that buffers count as used, and that they never exceed the
// budget.
func TestBufferBudget(t *testing.T) {
	m := stream.NewMemory(8 * mib)
	if m.Budget() != 7*mib {
		t.Fatalf("a budget of %d bytes", m.Budget())
	}
	first := m.NewBuffer(5*mib - 1)
	if first == nil || m.NewBuffer(2*mib+1) != nil {
		t.Fatal("more than 2 MiB were given beside 5, or the first 5 were not")
	}
	second := m.NewBuffer(2 * mib)
	first.Free()
	if used, _ := m.Used(); second == nil || used != 2*mib {
		t.Errorf("%d bytes are in use, want 2 MiB", used)
	}
	second.Free()
	if b := new(stream.Memory).NewBuffer(64 * mib); b == nil {
		t.Error("a Memory without a limit has one")
	}
}
