package session

import (
	"bytes"
	"errors"
	"io"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
)

// lending is a reader that lends its memory.
type lending struct{ *bytes.Reader }

func (l lending) Lend(max int) ([]byte, error) {
	p := make([]byte, min(max, l.Len()))
	if _, err := io.ReadFull(l, p); err != nil || len(p) == 0 {
		return nil, io.EOF
	}
	return p, nil
}

// TestStopWaitsForLentBytes checks that an exchange does not end while a connection uses the
// memory of its body, and that it counts these bytes as sent.
func TestStopWaitsForLentBytes(t *testing.T) {
	b := &detachableBody{r: lending{bytes.NewReader(make([]byte, 10))}}
	if p, err := b.Lend(4); len(p) != 4 || err != nil {
		t.Fatalf("Lend = %d bytes, %v", len(p), err)
	}
	b.Return()
	if p, err := b.Lend(4); len(p) != 4 || err != nil {
		t.Fatalf("Lend = %d bytes, %v", len(p), err)
	}
	var returned atomic.Bool
	stopped := make(chan int64, 1)
	go func() {
		n := b.stop()
		if !returned.Load() {
			t.Error("stop did not wait for Return")
		}
		stopped <- n
	}()
	for range 1000 {
		runtime.Gosched() // stop waits for a mutex
	}
	returned.Store(true)
	b.Return()
	if n := <-stopped; n != 8 {
		t.Errorf("stop = %d, want 8", n)
	}
	if p, err := b.Lend(4); p != nil || !errors.Is(err, errStopped) {
		t.Errorf("Lend after stop = %d bytes, %v", len(p), err)
	}
	if n, err := b.Read(make([]byte, 1)); n != 0 || !errors.Is(err, errStopped) {
		t.Errorf("Read after stop = %d, %v", n, err)
	}
}

// TestBodyWithoutMemory checks that a body that lends nothing can still be read, and stopped.
func TestBodyWithoutMemory(t *testing.T) {
	b := &detachableBody{r: strings.NewReader("bytes")}
	if _, err := b.Lend(4); !errors.Is(err, errors.ErrUnsupported) {
		t.Fatalf("Lend: %v", err)
	}
	if got, err := io.ReadAll(b); string(got) != "bytes" || err != nil {
		t.Errorf("ReadAll = %q, %v", got, err)
	}
	if n := b.stop(); n != 5 {
		t.Errorf("stop = %d", n)
	}
}
