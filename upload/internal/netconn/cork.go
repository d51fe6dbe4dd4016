package netconn

import (
	"net"
	"sync"
)

// corkSize is the greatest size of the writes of a cork: a step in records of 16 KiB, with
// their headers.
const corkSize = mostStep + 2<<10

type corkBuffer [corkSize]byte

var corkBuffers = sync.Pool{New: func() any { return new(corkBuffer) }}

// cork is the connection below TLS. Between hold and flush it collects the records, of 16 KiB
// each, for larger writes. At all other times it holds nothing back: handshakes and alerts.
type cork struct {
	net.Conn

	mu  sync.Mutex
	buf *corkBuffer // nil unless records are held
	n   int         // bytes in buf
	err error       // of a write; what follows would have a gap before it
}

// hold makes Write collect bytes.
func (c *cork) hold() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.buf = corkBuffers.Get().(*corkBuffer)
}

// flush writes what was collected, and ends the collection.
func (c *cork) flush() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.writeHeld()
	corkBuffers.Put(c.buf)
	c.buf = nil
	return err
}

func (c *cork) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.buf == nil {
		return c.write(p)
	}
	total := 0
	for {
		n := copy(c.buf[c.n:], p[total:])
		c.n += n
		total += n
		if total == len(p) {
			return total, nil
		}
		if err := c.writeHeld(); err != nil {
			return total, err
		}
	}
}

func (c *cork) writeHeld() error {
	held := c.buf[:c.n]
	c.n = 0
	if len(held) == 0 {
		return c.err
	}
	_, err := c.write(held)
	return err
}

func (c *cork) write(p []byte) (n int, err error) {
	if c.err == nil {
		n, c.err = c.Conn.Write(p)
	}
	return n, c.err
}
