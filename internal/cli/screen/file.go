package screen

import (
	"time"

	"gcsup/internal/cli/result"
	"gcsup/upload"
)

// activeFile is the state of a file that is being uploaded.
type activeFile struct {
	id   int
	name string
	size int64 // -1 if unknown
	work Work

	last  upload.Event // the last one
	until time.Time    // the end of the wait that it reports; zero if the file does not wait

	sent, committed int64 // see upload.Event.Arrived; buffers on the way are no progress
	highest         int64 // the highest sent; it decreases only if the service lost bytes
	meter           meter
	allSent         time.Time // when the last byte was sent; zero before

	lost      int64     // bytes that the service lost
	lostUntil time.Time // how long they are shown at least
}

// lostNotice is how long a loss of bytes is shown at least.
const lostNotice = 10 * time.Second

// Work is what a run does with its files.
type Work int

const (
	Uploading Work = iota
	Comparing      // and sending nothing
)

// sums returns the part of t in the sums of the run.
func (t *activeFile) sums() sums { return sums{t.highest, t.committed, t.highest} }

// note updates t with an event.
func (t *activeFile) note(e upload.Event, now time.Time) {
	if t.work == Comparing {
		e = t.asProgress(e)
	}
	is := result.ProgressOf(e)
	if is.Arrived < t.sent || e.Kind == upload.Resumed || e.Compared < t.last.Compared || e.ToCompare != t.last.ToCompare {
		t.meter = meter{} // the offset jumped or the phase changed: the rate is unknown
	}
	switch {
	case e.Kind == upload.Discarded || e.Kind == upload.Divided: // the service lost nothing
		t.lost, t.highest = 0, is.Arrived
	case e.Committed < t.last.Committed || e.Kind == upload.Restarted:
		// These offsets are in the object: that in a compressed file is an estimate, which may decrease. What was
		// sent beyond the committed offset is sent again in any case.
		t.lost, t.lostUntil, t.highest = max(t.highest-is.Committed, 0), now.Add(lostNotice), is.Arrived
	}
	t.last, t.until = e, time.Time{}
	t.size, t.sent, t.committed, t.highest = is.Size, is.Arrived, is.Committed, max(t.highest, is.Arrived)
	if t.size < 0 || is.Sent < t.size {
		t.allSent = time.Time{}
	} else if t.allSent.IsZero() {
		t.allSent = now
	}
	switch e.Kind {
	case upload.LeaseHeld:
		t.until = now.Add(e.Delay)
	case upload.Waiting:
		t.meter, t.until = meter{}, now.Add(e.Delay)
	case upload.Progress, upload.Resumed, upload.Started, upload.Restarted:
		t.meter.add(now, is.Arrived)
	case upload.Verifying:
		t.meter.add(now, e.Compared)
	}
}

// A small file is sent in one request, and the reply usually follows its last byte at once.
const (
	smallFile  = 8 << 20
	replyDelay = 2 * time.Second // after which the reply is late
)

// ending reports whether only the reply to the request of a small file is awaited.
func (t *activeFile) ending(now time.Time) bool {
	busy := t.last.Kind == upload.Settling || t.last.ToCompare > 0 || !t.until.IsZero()
	return t.size <= smallFile && !busy && !t.allSent.IsZero() && now.Sub(t.allSent) < replyDelay
}

// replyIsLate reports whether all bytes were sent, and the reply takes long.
func (t *activeFile) replyIsLate(now time.Time) bool {
	return t.work == Uploading && !t.allSent.IsZero() && now.Sub(t.allSent) >= replyDelay
}

// asProgress returns an event of a file that is only compared as one of an upload: the bytes
// that were read stand for those that were sent.
func (t *activeFile) asProgress(e upload.Event) upload.Event {
	e.Source, e.Parts = nil, nil
	if e.Kind == upload.Verifying {
		e.Kind, e.Size, e.Sent, e.Arrived, e.Committed = upload.Progress, e.ToCompare, e.Compared, e.Compared, e.Compared
	} else {
		e.Size, e.Sent, e.Arrived, e.Committed = max(e.Size, t.size), t.sent, t.sent, t.committed
	}
	e.Compared, e.ToCompare = 0, 0
	return e
}
