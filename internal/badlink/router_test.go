package badlink

import (
	"encoding/binary"
	"io"
	"maps"
	"net/netip"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// device is a TUN device of a test: packets that the kernel sends, and those that it gets.
type device struct {
	sent, got chan []byte
	closed    chan struct{}
}

func newDevice() *device {
	return &device{sent: make(chan []byte), got: make(chan []byte, 100), closed: make(chan struct{})}
}

func (d *device) Read(p []byte) (int, error) {
	select {
	case packet := <-d.sent:
		return copy(p, packet), nil
	case <-d.closed:
		return 0, os.ErrClosed
	}
}

func (d *device) Write(p []byte) (int, error) {
	d.got <- append([]byte(nil), p...)
	return len(p), nil
}

func (d *device) Close() error {
	close(d.closed)
	return nil
}

var _ io.ReadWriteCloser = (*device)(nil)

var (
	alice = netip.MustParseAddr("10.0.0.1")
	bob   = netip.MustParseAddr("10.0.0.2")
	carol = netip.MustParseAddr("10.0.0.3")
)

// segment returns an IPv4 packet with n bytes of TCP data.
func segment(from, to netip.Addr, n int) []byte {
	p := make([]byte, 40+n)
	p[0], p[9], p[32] = 0x45, 6, 5<<4
	binary.BigEndian.PutUint16(p[2:], uint16(len(p)))
	a, b := from.As4(), to.As4()
	copy(p[12:], a[:])
	copy(p[16:], b[:])
	return p
}

// arrives reports whether a packet arrives, and when.
func (d *device) arrives(t *testing.T, start time.Time) (after time.Duration, ok bool) {
	t.Helper()
	select {
	case <-d.got:
		return time.Since(start), true
	case <-time.After(time.Minute):
		return 0, false
	}
}

// TestRouter sends packets in both directions, over a link that goes away, and to an
// address that is dead.
func TestRouter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := newDevice(), newDevice()
		r := newRouter(client, server, Conditions{Delay: 75 * time.Millisecond}, 1)
		check := func(what string, from, to *device, packet []byte, want bool) {
			t.Helper()
			start := time.Now()
			from.sent <- packet
			if after, ok := to.arrives(t, start); ok != want || ok && after != 75*time.Millisecond {
				t.Errorf("%s: arrives: %v, after %v; want %v", what, ok, after, want)
			}
		}
		there, back := segment(alice, bob, 100), segment(bob, alice, 10)
		check("up", client, server, there, true)
		check("up, back", server, client, back, true)
		r.SetDown(true)
		check("down", client, server, there, false)
		check("down, back", server, client, back, false)
		r.SetDown(false)
		r.SetDead(bob, true)
		check("dead", client, server, there, false)
		check("dead, back", server, client, back, false)
		check("the other address", client, server, segment(alice, carol, 7), true)
		r.SetDead(bob, false)
		check("alive again", client, server, there, true)
		check("no data", client, server, segment(alice, bob, 0), true)
		check("not IPv4", client, server, []byte{0x60, 1, 2, 3}, false)

		if got, want := r.Sent(), (map[netip.Addr]int64{bob: 200, carol: 7}); !maps.Equal(got, want) {
			t.Errorf("Sent() = %v, want %v", got, want)
		}
		if err := r.close(); err != nil {
			t.Error(err)
		}
	})
}
