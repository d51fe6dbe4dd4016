package fakegcs

import (
	"context"
	"io"
	"sync"
	"time"
)

// link limits the rate of each connection and of all of them together, each
// direction for itself.
type link struct {
	rate    int64 // bytes per second of one connection; 0 is no limit
	in, out bucketOfBytes
	mu      sync.Mutex
	conns   map[string]*lane // by remote address
}

// lane is one connection's share. HTTP/2 puts many requests on one.
type lane struct {
	in, out bucketOfBytes
	users   int
	each    int
}

// bucketOfBytes is a token bucket: it knows when the next byte may pass. It
// makes up for what a wait took too long, up to late.
type bucketOfBytes struct {
	mu   sync.Mutex
	rate int64
	next time.Time
}

// late is how long timers and writes may hold up the bytes between two waits
// without lowering the rate.
const late = 20 * time.Millisecond

// reserve books n bytes and tells how long to wait before they have passed.
func (b *bucketOfBytes) reserve(n int, now time.Time) time.Duration {
	if b.rate == 0 {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next.IsZero() {
		b.next = now
	} else if earliest := now.Add(-late); b.next.Before(earliest) {
		b.next = earliest
	}
	b.next = b.next.Add(time.Duration(float64(n) / float64(b.rate) * float64(time.Second)))
	return b.next.Sub(now)
}

func (l *link) init(rate, total int64) {
	l.rate, l.in.rate, l.out.rate = rate, total, total
	l.conns = map[string]*lane{}
}

func (l *link) limited() bool { return l.rate > 0 || l.in.rate > 0 }

func (l *link) connect(addr string) *lane {
	if !l.limited() {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.conns[addr]
	if c == nil {
		c = &lane{}
		c.in.rate, c.out.rate = l.rate, l.rate
		// Pieces of 50 ms, so that the flow is even and a slow one is seen to flow.
		slowest := l.rate
		if slowest == 0 || l.in.rate > 0 && l.in.rate < slowest {
			slowest = l.in.rate
		}
		c.each = int(min(max(slowest/20, 512), quantum))
		l.conns[addr] = c
	}
	c.users++
	return c
}

func (l *link) disconnect(addr string) {
	if !l.limited() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.conns[addr]
	if c.users--; c.users == 0 {
		delete(l.conns, addr)
	}
}

func (c *lane) step() int { return c.each }

// pace waits until n bytes have passed through the lane and the shared bucket
// of one direction.
func (l *link) pace(ctx context.Context, c *lane, shared *bucketOfBytes, n int) {
	own := &c.in
	if shared == &l.out {
		own = &c.out
	}
	now := time.Now()
	d := max(own.reserve(n, now), shared.reserve(n, now))
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

type pacedWriter struct {
	w    io.Writer
	step int
	pace func(int)
}

func (p *pacedWriter) Write(data []byte) (int, error) {
	written := 0
	for len(data) > 0 {
		piece := data[:min(len(data), p.step)]
		p.pace(len(piece))
		n, err := p.w.Write(piece)
		written += n
		if err != nil {
			return written, err
		}
		data = data[n:]
	}
	return written, nil
}
