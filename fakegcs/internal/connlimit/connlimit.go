// Package connlimit limits the rate of each connection of an emulator, and of all
// connections together, separately for each direction.
package connlimit

import (
	"context"
	"io"
	"sync"
	"time"
)

// maxStep is the maximum number of bytes that pass at once.
const maxStep = 256 << 10

// Limiter limits the rate of each connection and of all of them together. Its
// zero value limits nothing.
type Limiter struct {
	rate    int64 // bytes per second of one connection; 0 is no limit
	in, out byteLimiter
	mu      sync.Mutex
	conns   map[string]*Conn // by remote address
}

// New returns a limiter for the given bytes per second in each direction, of one
// connection and of all together. 0 is no limit.
func New(rate, total int64) *Limiter {
	l := &Limiter{rate: rate, conns: map[string]*Conn{}}
	l.in.rate, l.out.rate = total, total
	return l
}

// Conn is the share of one connection. HTTP/2 puts many requests on one. A nil
// Conn has no limit.
type Conn struct {
	limiter *Limiter
	addr    string
	in, out byteLimiter
	users   int // guarded by Limiter.mu
	step    int
}

// Connect returns the connection from the remote address addr, for one request.
// It is nil if there is no limit.
func (l *Limiter) Connect(addr string) *Conn {
	if l.rate == 0 && l.in.rate == 0 {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.conns[addr]
	if c == nil {
		c = &Conn{limiter: l, addr: addr}
		c.in.rate, c.out.rate = l.rate, l.rate
		// Steps of 50 ms keep the flow even, and a slow one visible.
		slowest := l.rate
		if slowest == 0 || l.in.rate > 0 && l.in.rate < slowest {
			slowest = l.in.rate
		}
		c.step = int(min(max(slowest/20, 512), maxStep))
		l.conns[addr] = c
	}
	c.users++
	return c
}

// Disconnect ends the request that Connect was called for.
func (c *Conn) Disconnect() {
	if c == nil {
		return
	}
	l := c.limiter
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.users--; c.users == 0 {
		delete(l.conns, c.addr)
	}
}

// Step returns how many bytes may pass at once.
func (c *Conn) Step() int { return c.step }

// In waits until n bytes have come in, or ctx has ended.
func (c *Conn) In(ctx context.Context, n int) { pace(ctx, n, &c.in, &c.limiter.in) }

// Writer returns a writer to w that waits for the bytes to pass, until ctx has
// ended. On a nil Conn it is w itself.
func (c *Conn) Writer(ctx context.Context, w io.Writer) io.Writer {
	if c == nil {
		return w
	}
	return &writer{ctx: ctx, w: w, conn: c}
}

type writer struct {
	ctx  context.Context // of the server, for the time of one reply
	w    io.Writer
	conn *Conn
}

func (w *writer) Write(data []byte) (int, error) {
	written := 0
	for len(data) > 0 {
		piece := data[:min(len(data), w.conn.step)]
		pace(w.ctx, len(piece), &w.conn.out, &w.conn.limiter.out)
		n, err := w.w.Write(piece)
		written += n
		if err != nil {
			return written, err
		}
		data = data[n:]
	}
	return written, nil
}

// pace waits until n bytes have passed both limiters.
func pace(ctx context.Context, n int, own, shared *byteLimiter) {
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

// byteLimiter is a token bucket: it has the time at which the next byte may pass. It
// compensates for a wait that took too long, by at most slack.
type byteLimiter struct {
	mu   sync.Mutex
	rate int64 // bytes per second; 0 is no limit
	next time.Time
}

// slack is how long timers and writes may delay the bytes between two waits without
// lowering the rate.
const slack = 20 * time.Millisecond

// reserve books n bytes and returns how long to wait until they have passed.
func (b *byteLimiter) reserve(n int, now time.Time) time.Duration {
	if b.rate == 0 {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next.IsZero() {
		b.next = now
	} else if earliest := now.Add(-slack); b.next.Before(earliest) {
		b.next = earliest
	}
	b.next = b.next.Add(time.Duration(float64(n) / float64(b.rate) * float64(time.Second)))
	return b.next.Sub(now)
}
