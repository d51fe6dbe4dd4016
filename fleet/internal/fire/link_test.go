//go:build linux

package fire_test

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"gcsup/internal/require"
)

// link is a network link from one worker to one server. While it is cut, it delays all bytes in both
// directions, and neither side notices an error.
type link struct {
	to string
	ln net.Listener
	up atomic.Int64 // bytes to the server

	mu    sync.Mutex
	whole chan struct{} // closed while the link is not cut
	pairs map[net.Conn]net.Conn
}

func newLink(t *testing.T, host, to string) *link {
	t.Helper()
	ln, err := net.Listen("tcp", host+":0")
	require.NoError(t, err)
	l := &link{to: to, ln: ln, whole: make(chan struct{}), pairs: map[net.Conn]net.Conn{}}
	close(l.whole)
	go l.serve()
	t.Cleanup(func() {
		_ = ln.Close()
		l.restore()
		l.reset()
	})
	return l
}

func (l *link) addr() string { return l.ln.Addr().String() }

func (l *link) serve() {
	for {
		c, err := l.ln.Accept()
		if err != nil {
			return
		}
		go l.connect(c)
	}
}

func (l *link) connect(c net.Conn) {
	<-l.passable()
	up, err := net.Dial("tcp", l.to)
	if err != nil {
		abort(c)
		return
	}
	l.mu.Lock()
	l.pairs[c] = up
	l.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() { l.copy(up, c, &l.up) })
	both.Go(func() { l.copy(c, up, new(atomic.Int64)) })
	both.Wait()
	l.mu.Lock()
	delete(l.pairs, c)
	l.mu.Unlock()
}

// copy copies bytes in one direction until the connection ends. The end is delayed like data.
func (l *link) copy(to, from net.Conn, passed *atomic.Int64) {
	buffer := make([]byte, 16<<10)
	for {
		n, err := from.Read(buffer)
		<-l.passable()
		if n > 0 {
			passed.Add(int64(n))
			if _, err := to.Write(buffer[:n]); err != nil {
				abort(from)
				return
			}
		}
		if err == io.EOF {
			_ = to.(*net.TCPConn).CloseWrite()
			return
		}
		if err != nil {
			abort(to)
			return
		}
	}
}

// abort resets a connection.
func abort(c net.Conn) {
	_ = c.(*net.TCPConn).SetLinger(0)
	_ = c.Close()
}

func (l *link) passable() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.whole
}

// cut stops all bytes until restore.
func (l *link) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.whole:
		l.whole = make(chan struct{})
	default:
	}
}

func (l *link) restore() {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.whole:
	default:
		close(l.whole)
	}
}

// end ends a cut. With reset, it also resets the connections.
func (l *link) end(reset bool) {
	if reset {
		l.reset()
	}
	l.restore()
}

// reset resets the connections, like a router that has lost its state.
func (l *link) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c, up := range l.pairs {
		abort(c)
		abort(up)
	}
}
