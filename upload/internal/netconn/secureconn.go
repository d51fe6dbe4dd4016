package netconn

import (
	"crypto/tls"
	"io"
	"net"
	"sync"
)

// secureConn is a [Conn] with TLS. It writes the records of a step at once.
type secureConn struct {
	*tls.Conn
	below *cork

	mu     sync.Mutex
	inStep bool // below may hold records back
	closed bool
}

// oneRecord is the most that a record of TLS has.
const oneRecord = 16 << 10

// ReadFrom is that of [Conn]. It must not be called twice at a time; net/http does not.
func (c *secureConn) ReadFrom(r io.Reader) (int64, error) { return send((*stepWriter)(c), r) }

// stepWriter writes a step, and returns when all of its records were passed to the network.
type stepWriter secureConn

func (w *stepWriter) Write(p []byte) (int, error) {
	c := (*secureConn)(w)
	if !c.begin() {
		return 0, net.ErrClosed
	}
	defer c.end()
	if len(p) <= oneRecord {
		return c.Conn.Write(p)
	}
	c.below.hold()
	n, err := c.Conn.Write(p)
	if flushed := c.below.flush(); err == nil {
		err = flushed
	}
	return n, err
}

func (c *secureConn) begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inStep = !c.closed
	return c.inStep
}

func (c *secureConn) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inStep = false
}

// Close closes the connection. During a step it sends no close_notify, which would have to
// wait for the step.
func (c *secureConn) Close() error {
	c.mu.Lock()
	c.closed = true
	inStep := c.inStep
	c.mu.Unlock()
	if inStep {
		return c.below.Close()
	}
	return c.Conn.Close()
}
