package spool

import (
	"errors"
	"io"
	"sync"
	"time"

	"gcsup/upload/internal/content"
)

// A HeadReader is a reader that keeps its first bytes.
type HeadReader struct {
	r     io.Reader
	Head  []byte        // at most content.HeadSize bytes; not changed after Known is closed
	Known chan struct{} // closed when Head is complete
	Close func()
}

// NewHeadReader returns a HeadReader of r.
func NewHeadReader(r io.Reader) *HeadReader {
	h := &HeadReader{r: r, Known: make(chan struct{})}
	h.Close = sync.OnceFunc(func() { close(h.Known) })
	return h
}

func (h *HeadReader) Read(p []byte) (int, error) {
	n, err := h.r.Read(p)
	if more := content.HeadSize - len(h.Head); more > 0 && n > 0 {
		h.Head = append(h.Head, p[:min(n, more, len(p))]...)
	}
	if err != nil || len(h.Head) == content.HeadSize {
		h.Close()
	}
	return n, err
}

// SetReadDeadline interrupts a Read, if the reader supports it.
func (h *HeadReader) SetReadDeadline(t time.Time) error {
	if d, ok := h.r.(interface{ SetReadDeadline(time.Time) error }); ok {
		return d.SetReadDeadline(t)
	}
	return errors.ErrUnsupported
}
