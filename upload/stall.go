package upload

import (
	"context"
	"io"
	"sync"
	"time"

	"gcsup/session"
)

// watch gives a request up when it is stalled: when it lags behind a minimum
// rate by more than a timeout. It adds up what the request is behind, so that a
// slow start or a pause is forgiven once bytes flow again. It goes on after the
// last byte, so a server that takes everything and never answers is noticed.
// Time that the source takes to give bytes is not counted.
//
// The model is that of Google's newest clients:
// https://github.com/googleapis/google-cloud-python/pull/18352.
type watch struct {
	timeout time.Duration
	rate    int64 // bytes per second
	cancel  context.CancelCauseFunc

	mu      sync.Mutex
	lag     time.Duration
	credit  time.Duration // for bytes that were handed to the network and not yet set against the lag
	since   time.Time     // when the network's turn began
	reading bool          // it is the source's turn
	slept   bool          // the timer went off meanwhile
	over    bool
	timer   *time.Timer
}

// watched returns a context that ends, with [session.ErrStalled] as its cause,
// when the request stalls. The caller must call stop.
func watched(ctx context.Context, timeout time.Duration, rate int64) (context.Context, *watch) {
	ctx, cancel := context.WithCancelCause(ctx)
	w := &watch{timeout: timeout, rate: rate, cancel: cancel, since: time.Now()}
	if timeout > 0 {
		w.timer = time.AfterFunc(timeout, w.look)
	}
	return ctx, w
}

func (w *watch) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	if w.timer != nil {
		w.timer.Stop()
	}
	w.cancel(nil)
}

// settle brings the lag up to now.
func (w *watch) settle(now time.Time) {
	w.lag = max(0, w.lag+now.Sub(w.since)-w.credit)
	w.since, w.credit = now, 0
}

// look is called by the timer when the lag may have reached the timeout.
func (w *watch) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		return
	}
	if w.reading {
		w.slept = true // Read sets the timer again
		return
	}
	w.settle(time.Now())
	if w.lag >= w.timeout {
		w.over = true
		w.cancel(session.ErrStalled)
		return
	}
	w.timer.Reset(w.timeout - w.lag)
}

// body makes the watch see what is read from r.
func (w *watch) body(r io.Reader) io.Reader { return &watchedBody{w, r} }

type watchedBody struct {
	w *watch
	r io.Reader
}

func (b *watchedBody) Read(p []byte) (int, error) {
	w := b.w
	w.mu.Lock()
	w.settle(time.Now())
	w.reading = true
	w.mu.Unlock()

	n, err := b.r.Read(p)

	w.mu.Lock()
	w.reading = false
	w.since = time.Now()
	w.credit = time.Duration(int64(n) * int64(time.Second) / w.rate)
	if w.slept && !w.over {
		w.slept = false
		w.timer.Reset(max(w.timeout-w.lag, 0))
	}
	w.mu.Unlock()
	return n, err
}
