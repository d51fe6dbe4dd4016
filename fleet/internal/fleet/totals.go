package fleet

import (
	"sync"
	"sync/atomic"
	"time"

	"gcsup/upload"
)

// totals counts what a worker has done, for metrics and Status.
type totals struct {
	started  time.Time
	files    atomic.Int64 // finished files
	letters  atomic.Int64 // dead letters
	bytes    atomic.Int64 // of the finished files
	failures atomic.Int64 // failed deliveries that count

	sent atomic.Int64       // object bytes that were handed to the network
	next func(upload.Event) // gets the events, too; may be nil

	mu     sync.Mutex
	since  time.Time // start of the current window
	then   int64     // value of sent at that time
	recent int64     // bytes per second in the last window
}

// finished counts the files of a task that left the queue.
func (t *totals) finished(files, letters int, bytes int64) {
	t.files.Add(int64(files))
	t.letters.Add(int64(letters))
	t.bytes.Add(bytes)
}

// observe counts the sent bytes of an upload from its events.
func (t *totals) observe(e upload.Event) {
	t.sent.Add(e.SentDelta)
	if t.next != nil {
		t.next(e)
	}
}

// observe logs the warnings of uploads, such as that a bucket gets too many requests, and counts the sent
// bytes.
func (w *Worker) observe(e upload.Event) {
	if e.Kind == upload.Warning {
		w.log.Warn("warning of an upload", "object", e.Spec.URL(), "cause", e.Cause)
	}
	w.totals.observe(e)
}

// rateWindow is the minimum time over which a rate is measured.
const rateWindow = time.Second

// rate returns the bytes per second that were sent recently.
func (t *totals) rate(now time.Time) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.since.IsZero() {
		t.since = now
	}
	if d, sent := now.Sub(t.since), t.sent.Load(); d >= rateWindow {
		t.recent = int64(float64(sent-t.then) / d.Seconds())
		t.since, t.then = now, sent
	}
	return t.recent
}
