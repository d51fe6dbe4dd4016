package session

import (
	"errors"
	"io"
	"sync"
)

var errStopped = errors.New("the exchange has ended")

// detachableBody is a request body that counts the bytes read and can be
// stopped. net/http may continue to read a body after it has returned the
// reply, when the caller may already reuse the underlying reader.
type detachableBody struct {
	mu      sync.Mutex
	r       io.Reader
	n       int64
	stopped bool
}

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

// stop waits for a Read that is under way, makes every later Read fail, and
// returns how many bytes were read.
func (b *detachableBody) stop() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stopped = true
	return b.n
}
