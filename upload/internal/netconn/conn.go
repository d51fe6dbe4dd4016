package netconn

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// body is the body of a request that lends its memory, see [gcsup/internal/lend.Reader]. If Lend
// succeeds, Return must be called.
type body interface {
	io.Reader
	Lend(max int) ([]byte, error)
	Return()
}

// Conn is a connection that sends the memory of a request body without a copy.
type Conn struct{ net.Conn }

// New returns a Conn that sends what c sends.
func New(c net.Conn) *Conn { return &Conn{c} }

// ReadFrom implements [io.ReaderFrom]. net/http calls it with the body of a request, limited
// to its length.
func (c *Conn) ReadFrom(r io.Reader) (int64, error) { return send(c.Conn, r) }

// send writes the bytes of r to w.
func send(w io.Writer, r io.Reader) (int64, error) {
	limited, ok := r.(*io.LimitedReader)
	if !ok {
		return io.Copy(w, r)
	}
	b, ok := limited.R.(body)
	if !ok {
		return io.Copy(w, r)
	}
	if n, err := sendLent(w, b, limited); !errors.Is(err, errNotLent) {
		return n, err
	}
	return sendCopies(w, limited)
}

// errNotLent means that a body has no memory to lend. Nothing was read.
var errNotLent = errors.New("the body has no memory of its own")

// errLent means that a body breaks the contract of Lend.
var errLent = errors.New("a body has lent no bytes, or too many")

// sendLent sends the bytes of b from its memory.
func sendLent(w io.Writer, b body, limited *io.LimitedReader) (n int64, err error) {
	for step := firstStep; limited.N > 0; {
		p, err := b.Lend(int(min(int64(step), limited.N)))
		switch {
		case err == io.EOF:
			return n, nil
		case n == 0 && errors.Is(err, errors.ErrUnsupported):
			return 0, errNotLent
		case err != nil:
			return n, err
		}
		if len(p) == 0 || int64(len(p)) > limited.N {
			b.Return()
			return n, errLent
		}
		limited.N -= int64(len(p))
		began := time.Now()
		sent, err := w.Write(p)
		b.Return()
		n += int64(sent)
		if err != nil {
			return n, err
		}
		step = nextStep(step, time.Since(began))
	}
	return n, nil
}

// Memory is the size of the buffers of a connection, in bytes, while it sends a body that has no
// memory to lend.
const Memory = firstStep + corkSize

// copies has the buffers of sendCopies.
var copies = sync.Pool{New: func() any { return new([firstStep]byte) }}

// onlyWriter hides a ReadFrom, which would not use the buffer.
type onlyWriter struct{ io.Writer }

// sendCopies sends the bytes of r, which has no memory to lend.
func sendCopies(w io.Writer, r io.Reader) (int64, error) {
	buf := copies.Get().(*[firstStep]byte)
	defer copies.Put(buf)
	return io.CopyBuffer(onlyWriter{w}, r, buf[:])
}
