package upload

import (
	"errors"
	"io"
	"sync"
	"time"

	"gcsup/chunk"
)

// headReader is a reader that keeps its first bytes.
type headReader struct {
	r     io.Reader
	head  []byte        // at most chunk.HeadSize bytes; not changed after known is closed
	known chan struct{} // closed when head is complete
	close func()
}

func newHeadReader(r io.Reader) *headReader {
	h := &headReader{r: r, known: make(chan struct{})}
	h.close = sync.OnceFunc(func() { close(h.known) })
	return h
}

func (h *headReader) Read(p []byte) (int, error) {
	n, err := h.r.Read(p)
	if more := chunk.HeadSize - len(h.head); more > 0 && n > 0 {
		h.head = append(h.head, p[:min(n, more, len(p))]...)
	}
	if err != nil || len(h.head) == chunk.HeadSize {
		h.close()
	}
	return n, err
}

// SetReadDeadline interrupts a Read, if the reader supports it.
func (h *headReader) SetReadDeadline(t time.Time) error {
	if d, ok := h.r.(interface{ SetReadDeadline(time.Time) error }); ok {
		return d.SetReadDeadline(t)
	}
	return errors.ErrUnsupported
}
