// Package memnet is a network inside one process: a [net.Listener] and the
// dial function that reaches it, joined by bounded buffers instead of sockets.
//
// It exists for tests that run an HTTP client and server inside a
// testing/synctest bubble. A goroutine that waits for a socket is not durably
// blocked, so the bubble's clock never advances. Here every wait is on a
// [sync.Cond], which blocks durably. Call [Listen] inside the bubble, and close the
// server before the bubble ends.
//
//	ln, dial := memnet.Listen()
//	go http.Serve(ln, handler)
//	client := &http.Client{Transport: &http.Transport{DialContext: dial}}
//
// docs/examples/outage_test.go is a complete test of an upload through an outage of
// an hour, with package fakegcs as the handler.
//
// Unlike [net.Pipe], a connection has the properties of TCP on which HTTP depends. A
// write returns as soon as the bytes fit into the buffer. One side can close for
// writing only. The errors are those of a socket (on Unix EPIPE, ECONNRESET), so that
// code that classifies them can be tested.
package memnet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// bufferSize is the size of the buffer of one direction. It is small, so that a
// writer blocks soon if its peer does not read, as on a slow network.
const bufferSize = 64 << 10

// Listen opens a listener and returns it with the dial function that connects
// to it. The function has the signature of [net/http.Transport.DialContext];
// it ignores the network and address. It fails if ctx ends or the listener is
// closed before the connection is accepted.
func Listen() (net.Listener, func(ctx context.Context, network, addr string) (net.Conn, error)) {
	l := &listener{accept: make(chan net.Conn), closed: make(chan struct{})}
	return l, l.dial
}

type listener struct {
	accept chan net.Conn
	closed chan struct{}
	once   sync.Once
	dialed atomic.Int64 // numbers the connections, so that each has its own address
}

func (l *listener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := pair(l.dialed.Add(1))
	select {
	case l.accept <- server:
		return client, nil
	case <-l.closed:
		return nil, opError("dial", os.NewSyscallError("connect", errRefused))
	case <-ctx.Done():
		return nil, opError("dial", context.Cause(ctx))
	}
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.accept:
		return c, nil
	case <-l.closed:
		return nil, opError("accept", net.ErrClosed)
	}
}

func (l *listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *listener) Addr() net.Addr { return addr("pipe:0") }

type addr string

func (a addr) Network() string { return "pipe" }
func (a addr) String() string  { return string(a) }

// conn is one end of a connection: it reads from one half and writes the other.
type conn struct {
	in, out       *half
	local, remote addr
	abrupt        atomic.Bool // set by SetLinger(0): Close resets
}

func pair(n int64) (client, server *conn) {
	up, down := newHalf(), newHalf()
	c, s := addr(fmt.Sprintf("pipe:%d", n)), addr("pipe:0")
	return &conn{in: down, out: up, local: c, remote: s}, &conn{in: up, out: down, local: s, remote: c}
}

func (c *conn) Read(p []byte) (int, error)         { return c.in.read(p) }
func (c *conn) Write(p []byte) (int, error)        { return c.out.write(p) }
func (c *conn) LocalAddr() net.Addr                { return c.local }
func (c *conn) RemoteAddr() net.Addr               { return c.remote }
func (c *conn) SetReadDeadline(t time.Time) error  { return c.in.readBy.set(c.in, t) }
func (c *conn) SetWriteDeadline(t time.Time) error { return c.out.writeBy.set(c.out, t) }

func (c *conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// CloseWrite closes the direction to the peer. The other direction stays open.
func (c *conn) CloseWrite() error {
	c.out.end(io.EOF, os.NewSyscallError("write", errPipe), false)
	return nil
}

// SetLinger(0) makes Close reset the connection, as it does on a TCP socket:
// the peer loses the bytes that it has not read, and gets ECONNRESET.
func (c *conn) SetLinger(sec int) error {
	c.abrupt.Store(sec == 0)
	return nil
}

// AwaitRead waits until the peer has read all bytes that were written, or has closed the
// connection, at most for limit.
func (c *conn) AwaitRead(limit time.Duration) { c.out.awaitRead(limit) }

// Close closes both directions. The peer reads the written bytes and then io.EOF,
// and its writes fail with EPIPE. As on a TCP socket, closing with unread data is a
// reset.
func (c *conn) Close() error {
	closed := error(net.ErrClosed)
	reset := c.abrupt.Load()
	if c.in.end(closed, os.NewSyscallError("write", errPipe), true) {
		reset = true
	}
	if reset {
		c.in.fail(os.NewSyscallError("write", errReset))
		c.out.end(os.NewSyscallError("read", errReset), closed, true)
		return nil
	}
	c.out.end(io.EOF, closed, false)
	return nil
}

// half is one direction: a bounded buffer, and the deadlines of its reader and
// writer.
type half struct {
	mu       sync.Mutex
	cond     sync.Cond
	buf      []byte // written and not yet read; len <= bufferSize
	store    []byte // the memory of buf
	readErr  error  // returned by reads when buf is empty
	writeErr error  // returned by writes
	readBy   deadline
	writeBy  deadline
}

func newHalf() *half {
	h := &half{}
	h.cond.L = &h.mu
	return h
}

func (h *half) read(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for {
		switch {
		case h.readBy.passed:
			return 0, opError("read", os.ErrDeadlineExceeded)
		case h.readErr == net.ErrClosed:
			return 0, opError("read", net.ErrClosed)
		case len(h.buf) > 0:
			n := copyBytes(p, h.buf)
			if h.buf = h.buf[n:]; len(h.buf) == 0 {
				h.buf = h.store[:0]
			}
			h.cond.Broadcast()
			return n, nil
		case h.readErr == io.EOF:
			return 0, io.EOF
		case h.readErr != nil:
			return 0, opError("read", h.readErr)
		case len(p) == 0:
			return 0, nil
		}
		h.cond.Wait()
	}
}

func (h *half) write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	written := 0
	for {
		switch {
		case h.writeErr != nil:
			return written, opError("write", h.writeErr)
		case h.writeBy.passed:
			return written, opError("write", os.ErrDeadlineExceeded)
		case len(p) == 0:
			return written, nil
		}
		if n := min(bufferSize-len(h.buf), len(p)); n > 0 {
			h.append(p[:n])
			p, written = p[n:], written+n
			h.cond.Broadcast()
			continue
		}
		h.cond.Wait()
	}
}

// append adds p to the buffer, which then has at most bufferSize bytes. A reader that takes few bytes at a time
// leaves free space before them. They move there only if half of store is free, so that each byte rarely moves.
func (h *half) append(p []byte) {
	size := len(h.buf) + len(p)
	if cap(h.buf) < size {
		if len(h.store) < 2*size {
			h.store = make([]byte, max(2*size, 4<<10))
		}
		h.buf = h.store[:copy(h.store, h.buf)]
	}
	h.buf = h.buf[:size]
	copyBytes(h.buf[size-len(p):], p)
}

// awaitRead waits until the buffer is empty, at most for limit.
func (h *half) awaitRead(limit time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	late := false
	timer := time.AfterFunc(limit, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		late = true
		h.cond.Broadcast()
	})
	defer timer.Stop()
	for len(h.buf) > 0 && !late {
		h.cond.Wait()
	}
}

// end sets the errors of later reads and writes, unless an earlier end has set them.
// It reports whether h had unread bytes; if drop is set, it discards them.
func (h *half) end(readErr, writeErr error, drop bool) (unread bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.readErr == nil || drop && h.readErr == io.EOF {
		h.readErr = readErr
	}
	if h.writeErr == nil {
		h.writeErr = writeErr
	}
	unread = len(h.buf) > 0
	if drop {
		h.buf = nil
	}
	h.readBy.stop()
	h.writeBy.stop()
	h.cond.Broadcast()
	return unread
}

// fail replaces the error of later writes, because the reader's Close is a reset.
func (h *half) fail(writeErr error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.writeErr != net.ErrClosed {
		h.writeErr = writeErr
	}
}

// deadline wakes the waiters of its half when it passes. The half's lock
// guards it.
type deadline struct {
	timer  *time.Timer
	passed bool
	serial int // counts calls of set, so that a replaced timer that fires late does nothing
}

func (d *deadline) set(h *half, t time.Time) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	d.stop()
	d.passed = false
	d.serial++
	if t.IsZero() {
		return nil
	}
	serial := d.serial
	if wait := time.Until(t); wait > 0 {
		d.timer = time.AfterFunc(wait, func() {
			h.mu.Lock()
			defer h.mu.Unlock()
			if d.serial == serial {
				d.passed = true
				h.cond.Broadcast()
			}
		})
		return nil
	}
	d.passed = true
	h.cond.Broadcast()
	return nil
}

func (d *deadline) stop() {
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
}

func opError(op string, err error) error {
	return &net.OpError{Op: op, Net: "pipe", Err: err}
}
