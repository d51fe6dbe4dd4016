package session

import (
	"errors"
	"io"
	"sync"
)

var errStopped = errors.New("the exchange is over")

// detachableBody is a request body that counts what was handed out and can be stopped:
// net/http may go on reading a body after it has returned the reply, and the
// reader behind is to be used again.
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

// stop waits for a Read under way, lets no other begin, and returns how many
// bytes were handed out.
func (b *detachableBody) stop() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stopped = true
	return b.n
}
