package upload_test

import (
	"context"
	"io"
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
	rate    float64               // bytes per second of all connections together
	free    time.Time             // when the link has carried all pieces so far
	refuses bool                  // no connection can be opened
	conns   map[string]*jointConn // by the address of the client
	start   time.Time
	seconds []int64 // bytes carried by second since start
}

// serve serves srv over the link, and returns the transport of a client.
func (l *jointLink) serve(srv http.Handler) *http.Transport {
	l.start, l.conns, l.ended = time.Now(), map[string]*jointConn{}, make(chan struct{})
	ln, dial := memnet.Listen()
	hs := &http.Server{Handler: l.watch(srv)}
	go hs.Serve(jointListener{ln, l})
	tr := upload.NewTransport(nil)
	tr.Proxy = nil
	tr.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		l.mu.Lock()
		refuses := l.refuses
		l.mu.Unlock()
		if refuses {
			return nil, &net.OpError{Op: "dial", Net: "pipe", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
		}
		c, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return jointClientConn{c, l}, nil
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
	for _, c := range l.conns {
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
	c.socket -= n
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

// watch serves by h, and counts the bytes of requests that make an object or a part of a multipart upload. The requests
// of a session are not counted, because the service keeps what arrives.
func (l *jointLink) watch(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if q := r.URL.Query(); q.Has("partNumber") || q.Get("uploadType") == "multipart" {
			l.mu.Lock()
			conn := l.conns[r.RemoteAddr]
			l.mu.Unlock()
			if conn != nil {
				r.Body = jointBody{r.Body, conn}
				defer func() {
					l.mu.Lock()
					defer l.mu.Unlock()
					conn.whole = 0
				}()
			}
		}
		h.ServeHTTP(w, r)
	})
}

// jointBody is the body of a request that is counted.
type jointBody struct {
	io.ReadCloser
	conn *jointConn
}

func (b jointBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.conn.link.mu.Lock()
	defer b.conn.link.mu.Unlock()
	b.conn.whole += n
	return n, err
}

// atRisk returns the bytes that are lost if all connections end now, and how many connections have some.
func (l *jointLink) atRisk() (bytes, connections int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.conns {
		if n := c.socket + c.whole; n > 0 {
			bytes += n
			connections++
		}
	}
	return bytes, connections
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
	ln.link.conns[c.RemoteAddr().String()] = conn
	ln.link.mu.Unlock()
	return conn, nil
}

// jointClientConn is the client's end of a connection.
type jointClientConn struct {
	net.Conn
	link *jointLink
}

func (c jointClientConn) Write(p []byte) (int, error) {
	l, from := c.link, c.LocalAddr().String()
	add := func(n int) {
		l.mu.Lock()
		defer l.mu.Unlock()
		if conn := l.conns[from]; conn != nil {
			conn.socket += n
		}
	}
	total := 0
	for len(p) > 0 {
		// A piece counts before the server can read it.
		piece := p[:min(len(p), l.piece())]
		add(len(piece))
		n, err := c.Conn.Write(piece)
		add(n - len(piece))
		if total += n; err != nil {
			return total, err
		}
		p = p[n:]
	}
	return total, nil
}

// Close ends the connection for the client, which has lost what is on the way.
func (c jointClientConn) Close() error {
	c.link.mu.Lock()
	delete(c.link.conns, c.LocalAddr().String())
	c.link.mu.Unlock()
	return c.Conn.Close()
}

// jointConn is the server's end of a connection.
type jointConn struct {
	net.Conn
	link   *jointLink
	free   time.Time // as in jointLink
	socket int       // bytes that the client has written and the link has not carried
	whole  int       // bytes received of a request that the service keeps as a whole or not at all
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
	delete(c.link.conns, c.Conn.RemoteAddr().String())
	c.link.mu.Unlock()
	return c.Conn.Close()
}
