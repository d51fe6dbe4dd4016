package netconn

import (
	"crypto/tls"
	"io"
	"net"
	"testing"
	"time"

	"gcsup/internal/require"
)

// TestUnacknowledged checks that the bytes count that the peer has no room for, and none after it
// has read them.
func TestUnacknowledged(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	c, err := net.Dial("tcp", ln.Addr().String())
	require.NoError(t, err)
	defer c.Close()
	peer, err := ln.Accept()
	require.NoError(t, err)
	defer peer.Close()
	s := NewSocket(New(c))
	if n, ok := s.Unacknowledged(); n != 0 || !ok {
		t.Fatalf("%d bytes, %t, before the first", n, ok)
	}
	sent := 0
	for ; ; sent += 64 << 10 { // until the buffers are full
		_ = c.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
		if n, err := c.Write(make([]byte, 64<<10)); err != nil {
			sent += n
			break
		}
	}
	if n, ok := s.Unacknowledged(); n <= 0 || n >= int64(sent) || !ok {
		t.Errorf("%d of %d bytes, %t, while the peer reads nothing", n, sent, ok)
	}
	if _, err := io.CopyN(io.Discard, peer, int64(sent)); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(10 * time.Second); ; { // the last acknowledgement may follow
		n, ok := s.Unacknowledged()
		if n == 0 && ok {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d bytes, %t, after the peer has read all", n, ok)
		}
	}
	_ = c.Close()
	if n, ok := s.Unacknowledged(); ok {
		t.Errorf("%d bytes of a closed connection", n)
	}
}

// TestNewSocket checks which connections have a socket.
func TestNewSocket(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	tcp := &net.TCPConn{}
	for _, tt := range []struct {
		conn net.Conn
		want bool
	}{
		{a, false},
		{New(a), false},
		{tls.Client(a, &tls.Config{}), false},
		{&secureConn{below: &cork{Conn: a}}, false},
	} {
		if s := NewSocket(tt.conn); (s != nil) != tt.want {
			t.Errorf("NewSocket(%T) = %v", tt.conn, s)
		}
	}
	if n, ok := NewSocket(a).Unacknowledged(); n != 0 || ok {
		t.Errorf("%d bytes, %t, of a pipe", n, ok)
	}
	if NewSocket(New(tcp)) != nil {
		t.Error("a connection that is not open has a socket")
	}
}
