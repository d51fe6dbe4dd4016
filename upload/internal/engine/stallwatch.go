package engine

import (
	"context"
	"io"
	"sync"
	"time"

	"gcsup/internal/lend"
	"gcsup/session"
)

// stallWatch cancels a stalled request: one that lags behind a minimum rate by more
// than a timeout. It adds up the lag, which decreases again when bytes flow after a
// slow start or a pause. It continues after the last byte, so that it detects a
// server that accepts all bytes and never answers. It does not count the time that
// the source needs.
//
// The model is that of Google's newest clients:
// https://github.com/googleapis/google-cloud-python/pull/18352.
type stallWatch struct {
	timeout time.Duration
	rate    int64 // bytes per second
	cancel  context.CancelCauseFunc

	mu      sync.Mutex
	lag     time.Duration
	credit  time.Duration // for bytes that were handed to the network and not yet deducted from the lag
	since   time.Time     // when the network's turn began; lag is computed up to this time
	reading bool          // it is the source's turn
	fired   bool          // the timer fired during that turn
	stopped bool
	timer   *time.Timer
}

// watchStall returns a context that ends, with [session.ErrStalled] as its cause,
// when the request stalls. The caller must call stop.
func watchStall(ctx context.Context, timeout time.Duration, rate int64) (context.Context, *stallWatch) {
	ctx, cancel := context.WithCancelCause(ctx)
	w := &stallWatch{timeout: timeout, rate: rate, cancel: cancel, since: time.Now()}
	if timeout > 0 {
		w.timer = time.AfterFunc(timeout, w.timerFired)
	}
	return ctx, w
}

func (w *stallWatch) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = true
	if w.timer != nil {
		w.timer.Stop()
	}
	w.cancel(nil)
}

// advance updates the lag to the time now.
func (w *stallWatch) advance(now time.Time) {
	w.lag = max(0, w.lag+now.Sub(w.since)-w.credit)
	w.since, w.credit = now, 0
}

// timerFired is called when the lag may have reached the timeout.
func (w *stallWatch) timerFired() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped {
		return
	}
	if w.reading {
		w.fired = true // endRead sets the timer again
		return
	}
	w.advance(time.Now())
	if w.lag >= w.timeout {
		w.stopped = true
		w.cancel(session.ErrStalled)
		return
	}
	w.timer.Reset(w.timeout - w.lag)
}

// body returns a reader of r that updates w. interrupt ends a wait of r.
func (w *stallWatch) body(r io.Reader, interrupt func()) io.Reader {
	return &watchedBody{w, r, interrupt}
}

type watchedBody struct {
	w         *stallWatch
	r         io.Reader
	interrupt func()
}

// Interrupt ends a Read that waits, see [session.Client.Put].
func (b *watchedBody) Interrupt() { b.interrupt() }

func (b *watchedBody) Read(p []byte) (int, error) {
	b.w.beginRead()
	n, err := b.r.Read(p)
	b.w.endRead(n)
	return n, err
}

// Lend implements [lend.Reader].
func (b *watchedBody) Lend(max int) ([]byte, error) {
	b.w.beginRead()
	p, err := lend.Bytes(b.r, max)
	b.w.endRead(len(p))
	return p, err
}

// beginRead begins the source's turn.
func (w *stallWatch) beginRead() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.advance(time.Now())
	w.reading = true
}

// endRead begins the network's turn, for n bytes.
func (w *stallWatch) endRead(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reading = false
	w.since = time.Now()
	w.credit = time.Duration(int64(n) * int64(time.Second) / w.rate)
	if w.fired && !w.stopped {
		w.fired = false
		w.timer.Reset(max(w.timeout-w.lag, 0))
	}
}
