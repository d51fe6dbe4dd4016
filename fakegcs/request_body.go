package fakegcs

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

var (
	errCut         = errors.New("the connection was cut by a fault")
	errInterrupted = errors.New("the request was interrupted")
)

// body is the body of a request. It counts the bytes, applies the rate limit and the
// faults that act in the middle of a request, and can be interrupted.
type body struct {
	r    io.Reader
	core *core
	ctx  context.Context     // of the request
	w    http.ResponseWriter // of the request; nil for a call of a batch
	pace func(n int)         // waits as the rate limit requires; nil if there is none
	step int                 // with pace: the maximum number of bytes to read at once

	cut, stall, corrupt int64 // offsets in the body; -1 for none
	stallFor            time.Duration

	received atomic.Int64
	activity atomic.Int64 // grows while bytes arrive
	stalled  atomic.Bool  // waits because of a fault
	once     sync.Once
	stop     chan struct{}
}

// newBody returns the body of r. w is nil for a call of a batch.
func (s *Server) newBody(w http.ResponseWriter, r *http.Request) *body {
	return &body{r: r.Body, core: s.core, ctx: r.Context(), w: w, cut: -1, stall: -1, corrupt: -1, stop: make(chan struct{})}
}

// setFault applies a fault to the body.
func (b *body) setFault(f bodyFault) {
	if f.cut {
		b.cut = f.at
	}
	if f.stall {
		b.stall, b.stallFor = f.at, f.stallFor
	}
	if f.corrupt {
		b.corrupt = f.at
	}
}

func (b *body) Read(p []byte) (int, error) {
	select {
	case <-b.stop:
		return 0, errInterrupted
	default:
	}
	at := b.received.Load()
	if at == b.stall {
		b.stall = -1
		b.stalled.Store(true)
		ok := b.core.wait(b.ctx, b.stallFor, b.stop)
		b.stalled.Store(false)
		if !ok {
			return 0, errInterrupted
		}
	}
	if at == b.cut {
		return 0, errCut
	}
	for _, limit := range []int64{b.cut, b.stall} {
		if limit > at {
			p = p[:min(int64(len(p)), limit-at)]
		}
	}
	if b.pace != nil {
		p = p[:min(len(p), b.step)]
	}
	n, err := b.r.Read(p)
	if n > 0 {
		if b.pace != nil {
			b.pace(n)
		}
		b.received.Add(int64(n))
		b.activity.Add(1)
		if b.corrupt >= at && b.corrupt < at+int64(n) {
			p[b.corrupt-at] ^= 1
		}
	}
	return n, err
}

// interrupt ends the request: it makes the current Read, all later ones, and the
// writes of the reply fail.
func (b *body) interrupt() {
	b.once.Do(func() {
		close(b.stop)
		b.expire()
	})
}

// expire makes calls that wait for the network return. Not every ResponseWriter supports
// deadlines.
func (b *body) expire() {
	if b.w == nil { // the body of a call of a batch is in memory
		return
	}
	rc := http.NewResponseController(b.w)
	_ = rc.SetReadDeadline(time.Unix(1, 0))
	_ = rc.SetWriteDeadline(time.Unix(1, 0)) // a client that doesn't read
}
