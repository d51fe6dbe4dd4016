package netconn

import (
	"crypto/tls"
	"net"
	"syscall"
)

// Socket is the socket of a connection.
type Socket struct{ raw syscall.RawConn }

// NewSocket returns the socket of c, or nil if c has none, for example because a program wraps it.
func NewSocket(c net.Conn) *Socket {
	for {
		switch outer := c.(type) {
		case *Conn:
			c = outer.Conn
		case *secureConn:
			c = outer.below.Conn
		case *tls.Conn:
			c = outer.NetConn()
		case *cork:
			c = outer.Conn
		case syscall.Conn:
			raw, err := outer.SyscallConn()
			if err != nil {
				return nil
			}
			return &Socket{raw}
		default:
			return nil
		}
	}
}

// Unacknowledged returns how many of the bytes that were written to the connection the peer has not
// acknowledged. ok is false if the system does not tell, or if the connection is closed. A nil *Socket
// does not tell.
func (s *Socket) Unacknowledged() (n int64, ok bool) {
	if s == nil {
		return 0, false
	}
	return unacknowledged(s.raw)
}
