package upload_test

import (
	"context"
	"net"
	"net/http"
	"os"
	"sync"
	"syscall"
	"time"

	"gcsup/fakegcs/memnet"
	"gcsup/upload"
)

// jointLink is a link whose rate changes. All connections share it in turns, a piece at a time. The bytes of requests,
// headers included, take time on it; replies do not.
type jointLink struct {
	each  float64 // bytes per second that a connection carries at most
	ended chan struct{}

	mu      sync.Mutex
	rate    float64   // bytes per second of all connections together
	free    time.Time // when the link has carried all pieces so far
	refuses bool      // no connection can be opened
	conns   map[*jointConn]bool
	start   time.Time
	seconds []int64 // bytes carried by second since start
}

// serve serves srv over the link, and returns the transport of a client.
func (l *jointLink) serve(srv http.Handler) *http.Transport {
	l.start, l.conns, l.ended = time.Now(), map[*jointConn]bool{}, make(chan struct{})
	ln, dial := memnet.Listen()
	hs := &http.Server{Handler: srv}
	go hs.Serve(jointListener{ln, l})
	tr := upload.NewTransport()
	tr.Proxy = nil
	tr.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		l.mu.Lock()
		refuses := l.refuses
		l.mu.Unlock()
		if refuses {
			return nil, &net.OpError{Op: "dial", Net: "pipe", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
		}
		return dial(ctx, network, address)
	}
	go func() {
		<-l.ended
		_ = hs.Close()
	}()
	return tr
}

// refuse makes all connections fail, and no new one possible.
func (l *jointLink) refuse(on bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refuses = on
	for c := range l.conns {
		if on {
			_ = c.Conn.(interface{ SetLinger(int) error }).SetLinger(0)
			_ = c.Conn.Close()
		}
	}
}

func (l *jointLink) setRate(rate float64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rate = rate
	l.free = time.Now()
}

// pass waits until n bytes of a connection have passed.
func (l *jointLink) pass(c *jointConn, n int) {
	l.mu.Lock()
	now := time.Now()
	l.free = later(l.free, now).Add(time.Duration(float64(n) / l.rate * float64(time.Second)))
	c.free = later(c.free, now).Add(time.Duration(float64(n) / l.each * float64(time.Second)))
	wait := later(l.free, c.free).Sub(now)
	l.mu.Unlock()
	select {
	case <-time.After(wait):
	case <-l.ended:
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	second := int(time.Since(l.start) / time.Second)
	for len(l.seconds) <= second {
		l.seconds = append(l.seconds, 0)
	}
	l.seconds[second] += int64(n)
}

// piece returns how many bytes pass at a time.
func (l *jointLink) piece() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return int(min(max(min(l.rate, l.each)/16, 1<<10), 32<<10))
}

// carried returns the bytes that were carried in the seconds from one time to another.
func (l *jointLink) carried(from, to time.Time) (n int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for s := int(from.Sub(l.start) / time.Second); s < min(int(to.Sub(l.start)/time.Second), len(l.seconds)); s++ {
		n += l.seconds[s]
	}
	return n
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

type jointListener struct {
	net.Listener
	link *jointLink
}

func (ln jointListener) Accept() (net.Conn, error) {
	c, err := ln.Listener.Accept()
	if err != nil {
		return nil, err
	}
	conn := &jointConn{Conn: c, link: ln.link}
	ln.link.mu.Lock()
	ln.link.conns[conn] = true
	ln.link.mu.Unlock()
	return conn, nil
}

// jointConn is the server's end of a connection.
type jointConn struct {
	net.Conn
	link *jointLink
	free time.Time // as in jointLink
}

func (c *jointConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p[:min(len(p), c.link.piece())])
	if n > 0 {
		c.link.pass(c, n)
	}
	return n, err
}

func (c *jointConn) Close() error {
	c.link.mu.Lock()
	delete(c.link.conns, c)
	c.link.mu.Unlock()
	return c.Conn.Close()
}
