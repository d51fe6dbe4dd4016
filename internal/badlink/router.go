package badlink

import (
	"encoding/binary"
	"errors"
	"io"
	"maps"
	"net/netip"
	"os"
	"sync"
	"time"
)

// Router carries packets between a client and a server. All methods may be called from any
// goroutine.
type Router struct {
	ends    [2]io.Closer
	done    chan struct{}
	running sync.WaitGroup

	mu       sync.Mutex
	down     bool
	dead     map[netip.Addr]bool
	sent     map[netip.Addr]int64
	failures []error
}

// newRouter starts a router. The seed selects the packets that are lost. Each Read and each
// Write of an end must be one packet.
func newRouter(client, server io.ReadWriteCloser, c Conditions, seed uint64) *Router {
	r := &Router{ends: [2]io.Closer{client, server}, done: make(chan struct{}), dead: map[netip.Addr]bool{}, sent: map[netip.Addr]int64{}}
	r.start(newWire(client, server, r.gate(newShaper(c, seed), true)))
	r.start(newWire(server, client, r.gate(newShaper(c, seed+1), false)))
	return r
}

func (r *Router) start(w *wire) {
	r.running.Go(func() {
		if err := w.receive(); !errors.Is(err, os.ErrClosed) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.failures = append(r.failures, err)
		}
	})
	r.running.Go(func() { w.deliver(r.done) })
}

// gate returns the function that admits the packets of one direction.
func (r *Router) gate(s *shaper, fromClient bool) func(packet []byte) (time.Time, bool) {
	return func(packet []byte) (time.Time, bool) {
		h, ok := parse(packet)
		if !ok {
			return time.Time{}, false
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.down || r.dead[h.from] || r.dead[h.to] {
			return time.Time{}, false
		}
		due, ok := s.pass(time.Now(), len(packet))
		if ok && fromClient && h.data > 0 {
			r.sent[h.to] += int64(h.data)
		}
		return due, ok
	}
}

// SetDown makes the router drop all packets, or none.
func (r *Router) SetDown(down bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.down = down
}

// SetDead makes the router drop all packets to and from an address, or none.
func (r *Router) SetDead(a netip.Addr, dead bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dead[a] = dead
}

// Sent returns the bytes of TCP data that the client has sent to each address, and that were
// not dropped.
func (r *Router) Sent() map[netip.Addr]int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.sent)
}

// close stops the router and closes its ends. It returns why the router failed before, if
// it did.
func (r *Router) close() error {
	close(r.done)
	err := errors.Join(r.ends[0].Close(), r.ends[1].Close())
	r.running.Wait()
	return errors.Join(append(r.failures, err)...)
}

// header is what the router reads of an IPv4 packet.
type header struct {
	from, to netip.Addr
	data     int // bytes of TCP data
}

// parse reads the headers of a packet. ok is false if it is not IPv4.
func parse(packet []byte) (h header, ok bool) {
	const tcp = 6
	if len(packet) < 20 || packet[0]>>4 != 4 {
		return h, false
	}
	h.from, h.to = netip.AddrFrom4([4]byte(packet[12:16])), netip.AddrFrom4([4]byte(packet[16:20]))
	ip := int(packet[0]&15) * 4
	if packet[9] == tcp && len(packet) >= ip+20 {
		whole := min(int(binary.BigEndian.Uint16(packet[2:])), len(packet))
		h.data = max(0, whole-ip-int(packet[ip+12]>>4)*4)
	}
	return h, true
}
