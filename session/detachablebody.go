package session

import (
	"errors"
	"io"
	"sync"

	"gcsup/internal/lend"
)

var errStopped = errors.New("the exchange has ended")

// interrupt calls the method Interrupt of r, if it has one: see [Client.Put].
func interrupt(r io.Reader) {
	if i, ok := r.(interface{ Interrupt() }); ok {
		i.Interrupt()
	}
}

// detachableBody is a request body that counts the bytes read and can be
// stopped. net/http may continue to read a body after it has returned the
// reply, when the caller may already reuse the underlying reader.
//
// A connection that knows Lend and Return sends the memory of the reader. stop then waits
// until the bytes are sent. net/http closes the connection if that takes long after a reply,
// and at once if it returns an error.
type detachableBody struct {
	mu      sync.Mutex // locked while bytes are lent
	r       io.Reader
	n       int64
	stopped bool
}

var _ io.ReadCloser = (*detachableBody)(nil) // otherwise net/http wraps it, which hides Lend

func (b *detachableBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stopped {
		return 0, errStopped
	}
	n, err := b.r.Read(p)
	b.n += int64(n)
	return n, err
}

// Lend is the method of a [lend.Reader]. If the error is nil, the caller must call Return
// before it calls another method.
func (b *detachableBody) Lend(max int) ([]byte, error) {
	b.mu.Lock()
	if b.stopped {
		b.mu.Unlock()
		return nil, errStopped
	}
	p, err := lend.Bytes(b.r, max)
	if err != nil {
		b.mu.Unlock()
		return nil, err
	}
	b.n += int64(len(p))
	return p, nil
}

// Return ends the use of the bytes that Lend returned.
func (b *detachableBody) Return() { b.mu.Unlock() }

// Close does nothing. The caller of the exchange stops the body.
func (b *detachableBody) Close() error { return nil }

// stop waits for a Read that is under way, or for the return of bytes that are lent. It
// makes every later Read fail, and returns how many bytes were read.
func (b *detachableBody) stop() int64 {
	interrupt(b.r)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stopped = true
	return b.n
}
