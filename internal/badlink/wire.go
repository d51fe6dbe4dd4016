package badlink

import (
	"io"
	"slices"
	"sync"
	"time"
)

// maxPacket is more than the MTU of a TUN device, which is 1500.
const maxPacket = 2048

// wire carries packets from one end of a link to the other. Each Read and each Write of
// an end is one packet.
type wire struct {
	from io.Reader
	to   io.Writer

	// admit returns when a packet arrives, and false if it is lost.
	admit func(packet []byte) (due time.Time, ok bool)

	mu      sync.Mutex
	queue   []queued      // in the order in which they are due
	arrived chan struct{} // has room for one value: a packet was queued
	buffers sync.Pool
}

func newWire(from io.Reader, to io.Writer, admit func([]byte) (time.Time, bool)) *wire {
	return &wire{from: from, to: to, admit: admit, arrived: make(chan struct{}, 1),
		buffers: sync.Pool{New: func() any { return new([maxPacket]byte) }}}
}

// receive queues the packets that arrive, until a Read fails.
func (w *wire) receive() error {
	for {
		buffer := w.buffers.Get().(*[maxPacket]byte)
		n, err := w.from.Read(buffer[:])
		if err != nil {
			return err
		}
		due, ok := w.admit(buffer[:n])
		if !ok {
			w.buffers.Put(buffer)
			continue
		}
		w.mu.Lock()
		w.insert(queued{buffer, n, due})
		w.mu.Unlock()
		select {
		case w.arrived <- struct{}{}:
		default:
		}
	}
}

// deliver writes each packet when it is due, until done is closed. An end that refuses a
// packet loses it, as a device does that is down.
func (w *wire) deliver(done <-chan struct{}) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		p, wait, ok := w.next(time.Now())
		if ok {
			_, _ = w.to.Write(p.buffer[:p.size])
			w.buffers.Put(p.buffer)
			continue
		}
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-w.arrived:
		case <-done:
			return
		}
	}
}

// next returns a packet that is due, or how long to wait for one.
func (w *wire) next(now time.Time) (p queued, wait time.Duration, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.queue) == 0 {
		return p, time.Hour, false
	}
	p = w.queue[0]
	if wait := p.due.Sub(now); wait > 0 {
		return p, wait, false
	}
	w.queue = w.queue[1:]
	return p, 0, true
}

// queued is a packet on its way.
type queued struct {
	buffer *[maxPacket]byte
	size   int
	due    time.Time
}

// insert queues a packet behind those that are due at the same time. Almost all packets are
// the last ones.
func (w *wire) insert(p queued) {
	at := len(w.queue)
	for at > 0 && w.queue[at-1].due.After(p.due) {
		at--
	}
	w.queue = slices.Insert(w.queue, at, p)
}
