package session

import (
	"errors"
	"io"
	"sync"
)

var errStopped = errors.New("the exchange is over")

// guard is a request body that counts what was handed out and can be stopped:
// net/http may go on reading a body after it has returned the reply, and the
// reader behind is to be used again.
type guard struct {
	mu      sync.Mutex
	r       io.Reader
	n       int64
	stopped bool
}

func (g *guard) Read(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stopped {
		return 0, errStopped
	}
	n, err := g.r.Read(p)
	g.n += int64(n)
	return n, err
}

// stop waits for a Read under way, lets no other begin, and returns how many
// bytes were handed out.
func (g *guard) stop() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stopped = true
	return g.n
}
