package outbox

import (
	"errors"
	"time"

	"gcsup/backoff"
	"gcsup/internal/decide"
	"gcsup/session"
	"gcsup/upload"
	"gcsup/upload/internal/netconn"
)

// connectionMemory returns the size of the buffers of a connection, see [upload.NewTransport], that sends a small file of size
// bytes. If their number is not fixed, the connections of small files may need more memory than the files.
func connectionMemory(size int64) int64 {
	const writeBuffer = 64 << 10
	if size < writeBuffer {
		return writeBuffer
	}
	return writeBuffer + netconn.Memory
}

// lane bounds the attempts at a time at files of one class, small or large ones.
type lane struct {
	fixed   int              // how many there may be
	limiter *backoff.Limiter // replaces fixed, unless it is nil
	active  int              // attempts under way
}

// newLane returns a lane for a fixed number of files or, if that is 0, one with a limiter. The files of an ordered
// outbox need neither.
func newLane(fixed int, limiter *backoff.Limiter, ordered bool) lane {
	switch {
	case ordered:
		return lane{fixed: 1}
	case fixed > 0:
		return lane{fixed: fixed}
	}
	return lane{limiter: limiter}
}

// start reports whether another attempt may start, and counts it.
func (l *lane) start(now time.Time) bool {
	if l.limiter == nil && l.active >= l.fixed || l.limiter != nil && !l.limiter.Start(now) {
		return false
	}
	l.active++
	return true
}

// sent records bytes of an attempt that is under way.
func (l *lane) sent(now time.Time, bytes int64) {
	if l.limiter != nil && bytes > 0 {
		l.limiter.Progress(now, bytes)
	}
}

// refused records that the service refused a request of an attempt because of its load.
func (l *lane) refused(now time.Time) {
	if l.limiter != nil {
		l.limiter.Refused(now)
	}
}

// ended records the end of an attempt that uploaded that many bytes, those of sent left out.
func (l *lane) ended(now time.Time, bytes int64) {
	l.active--
	if l.limiter != nil {
		l.limiter.Ended(now, bytes)
	}
}

// overload reports whether the event is about a request that the service refused because of its load.
func overload(e upload.Event) bool {
	failed, ok := errors.AsType[*session.Error](e.Err)
	if e.Kind != upload.Waiting || e.Store || e.Blocked || !ok { // the error of a blocked retry was reported before
		return false
	}
	reply := session.Reply{Status: failed.Status, Reason: failed.Reason, Message: failed.Message, FromService: failed.FromService}
	load := decide.LoadOf(&reply)
	return load == decide.LoadTooFast || load == decide.LoadUnavailable
}
