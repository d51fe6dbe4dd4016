package badlink

import (
	"container/heap"
	"io"
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
	queue   inFlight
	count   uint64        // of the packets that were queued
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
		w.count++
		heap.Push(&w.queue, queued{buffer, n, due, w.count})
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
	if wait := w.queue[0].due.Sub(now); wait > 0 {
		return p, wait, false
	}
	return heap.Pop(&w.queue).(queued), 0, true
}

// queued is a packet on its way.
type queued struct {
	buffer *[maxPacket]byte
	size   int
	due    time.Time
	number uint64
}

// inFlight is a heap of packets. Those that are due at the same time remain in order.
type inFlight []queued

func (q inFlight) Len() int      { return len(q) }
func (q inFlight) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *inFlight) Push(p any)   { *q = append(*q, p.(queued)) }

func (q inFlight) Less(i, j int) bool {
	if order := q[i].due.Compare(q[j].due); order != 0 {
		return order < 0
	}
	return q[i].number < q[j].number
}

func (q *inFlight) Pop() any {
	last := len(*q) - 1
	p := (*q)[last]
	*q = (*q)[:last]
	return p
}
