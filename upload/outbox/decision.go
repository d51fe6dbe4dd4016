package outbox

import (
	"time"

	"gcsup/backoff"
	"gcsup/chunk"
	"gcsup/internal/sourcefile"
)

// phase is how far a file is on its way.
type phase uint8

// The phases.
const (
	settling  phase = iota // a program may still write to it
	complete               // it waits for its turn
	uploading              // an attempt is under way
	disposing              // its object was verified, and it is being removed, moved or recorded
	waiting                // the last attempt failed; the next one is at due
	kept                   // uploaded, and it stays
	failed                 // no attempt is left, and it could not be moved to .failed yet
)

var phaseNames = [...]string{"settling", "complete", "uploading", "disposing", "waiting", "kept", "failed"}

func (p phase) String() string { return phaseNames[p] }

// busy reports whether an attempt is under way. What happens to the file meanwhile is looked at
// when it has ended.
func (p phase) busy() bool { return p == uploading || p == disposing }

// instant is a moment of the monotonic clock, in ns since the outbox was opened.
type instant = time.Duration

// never is after every instant.
const never instant = 1<<63 - 1

// file is what is known of a file. It is a value: [rules.step] returns the next one.
//
// There may be many: the order of the fields, and scan, which is the table's, keep an entry small.
type file struct {
	id       chunk.Identity
	since    instant // when id was first seen
	due      instant // when to look again; never if nothing is due
	why      *cause  // why the last attempt did not succeed; nil if none failed
	mark     uint32  // how many files of the outbox were uploaded when the last attempt began or ended
	scan     uint32  // number of the last scan that found it
	failures uint16  // attempts in a row that did not succeed
	attempts uint16  // those of them that count, see rules.counts
	phase    phase
	last     attemptEnd // of the last attempt that did not succeed
	same     uint8      // of the attempts that count, those in a row with the outcome last
	compare  bool       // the object may have been made already
}

// unsaved reports whether the next attempt saves nothing, because there is no space for it.
func (f file) unsaved() bool { return f.last == full && f.same == 0 }

// cause is why an attempt did not succeed. An error would keep the history of the upload.
type cause struct{ kind, text string }

// event is what happened to a file.
type event struct {
	kind    eventKind
	id      chunk.Identity     // glanced, inspected
	writers sourcefile.Writers // inspected
	outcome attemptEnd         // ended
	why     *cause             // ended, stranded; nil for a success
}

type eventKind uint8

// The kinds of events.
const (
	glanced    eventKind = iota // a scan found the file
	inspected                   // the file was looked at for its identity and its writers
	absent                      // there is no such file
	expired                     // due has passed
	remembered                  // the file was uploaded, and is kept
	taken                       // an attempt begins
	verified                    // the object has the bytes of the file
	ended                       // the attempt ended with outcome
	stranded                    // the file could not be moved to .failed
)

// attemptEnd is how an attempt ended.
type attemptEnd uint8

// The outcomes.
const (
	disposed    attemptEnd = iota // the file was removed or moved away
	recorded                      // the file is kept
	altered                       // the file changed, or is open for writing
	vanished                      // the file does not exist any more
	interrupted                   // the outbox stops
	unusable                      // the file itself cannot be uploaded
	hopeless                      // the file, its name or its object cannot be uploaded, and repeating it cannot change that
	refused                       // the service refuses the file, or the settings of all files
	invalid                       // as refused, because the request is invalid: repeating it cannot change that
	unavailable                   // a failure that any other file can have too
	unreadable                    // a permission is missing, without which no object can be compared and no file removed
	full                          // the upload could not be saved, because there is no space
)

// confirmations is how many attempts in a row must have the same outcome if repeating them cannot change it.
const confirmations = 2

// action is what must be done with a file.
type action uint8

// The actions.
const (
	nothing       action = iota
	look                 // inspect the file
	queue                // upload it when it is its turn
	giveUp               // move it to .failed, or stop if the order must be kept
	forget               // the file is gone
	forgetAndLook        // the file is gone, and another one may have its name
	halt                 // no file can be removed: Run ends
)

// moment is when something happens, and what the decision needs besides.
type moment struct {
	at       instant
	clock    time.Time // for the limiters
	wall     int64     // ns since 1970; earlier if the clock has jumped since the outbox was opened
	uploaded uint32    // how many files of the outbox were uploaded
	random   float64   // in [0, 1)
}

// rules decide about files. They are pure: the same arguments always have the same result.
type rules struct {
	settle   time.Duration
	attempts int // 0 means no limit
	policy   backoff.Policy
	ordered  bool // no file is moved to .failed
}

// writersPoll is how often a file that is open for writing is looked at.
const writersPoll = 10 * time.Second

// step returns the next state of a file, and what must be done with it.
func (r *rules) step(f file, e event, now moment) (file, action) {
	switch e.kind {
	case glanced:
		switch {
		case f.phase.busy():
			return f, nothing
		case f.id != e.id:
			return f.changed(e.id, now), look
		case f.phase == settling && f.due == never: // the last look was without a result
			return f, look
		}
	case inspected:
		return r.inspected(f, e, now)
	case absent:
		if f.phase.busy() {
			return f, nothing
		}
		return f, forget
	case expired:
		switch f.phase {
		case settling, waiting:
			f.phase, f.due = settling, never
			return f, look
		case failed:
			f.due = never
			return f, giveUp
		}
	case remembered:
		f.phase, f.due = kept, never
	case taken:
		if f.phase, f.due = uploading, never; f.failures == 0 {
			f.mark = now.uploaded
		}
	case verified:
		f.phase = disposing
	case ended:
		return r.ended(f, e, now)
	case stranded:
		f.why, f.due = e.why, now.at+time.Minute
	}
	return f, nothing
}

// changed returns the state of a file that has another identity than before.
func (f file) changed(id chunk.Identity, now moment) file {
	return file{phase: settling, compare: f.compare, id: id, since: now.at, due: never}
}

// inspected decides whether a file is complete.
func (r *rules) inspected(f file, e event, now moment) (file, action) {
	if f.phase.busy() {
		return f, nothing
	}
	if f.id != e.id {
		f = f.changed(e.id, now)
	}
	if f.phase != settling {
		return f, nothing
	}
	if rest := r.rest(f, e.writers, now); rest > 0 {
		f.due = now.at + rest
		return f, nothing
	}
	f.phase, f.due = complete, never
	return f, queue
}

// rest returns how long to wait before the file is looked at again; 0 if it is complete.
func (r *rules) rest(f file, writers sourcefile.Writers, now moment) time.Duration {
	still := now.at - f.since // for how long it is known to be unchanged
	switch writers {
	case sourcefile.HasWriters:
		return max(min(r.settle, writersPoll), 100*time.Millisecond)
	case sourcefile.NoWriters:
		// A rename or a link changes only the change time, and a write both.
		if f.id.ChangeTimeNS > f.id.ModTimeNS {
			return 0
		}
		if changed := max(f.id.ChangeTimeNS, f.id.ModTimeNS); changed <= now.wall {
			still = max(still, time.Duration(now.wall-changed))
		}
	}
	return max(0, r.settle-still)
}

// ended decides what follows an attempt.
func (r *rules) ended(f file, e event, now moment) (file, action) {
	switch e.outcome {
	case disposed, vanished:
		return f, forgetAndLook
	case recorded:
		return file{phase: kept, id: f.id, due: never}, look // it may have changed meanwhile
	case interrupted:
		f.phase = complete
		return f, nothing
	}
	unsaved := f.unsaved()
	if f.last != e.outcome {
		f.last, f.same = e.outcome, 0
	}
	f.phase, f.compare, f.why = waiting, true, e.why
	if e.outcome == full && !unsaved {
		f.same = 0
		f.due = now.at // without a wait: an upload that removes its file makes space
		return f, nothing
	}
	f.failures = min(f.failures, 1<<15) + 1
	counts := r.counts(e.outcome, f, now)
	if counts {
		f.attempts = min(f.attempts, 1<<15) + 1
	}
	if counts || e.outcome == unreadable || e.outcome == full {
		f.same = min(f.same, confirmations) + 1
	}
	f.mark = now.uploaded
	f.due = now.at + r.policy.Wait(int(f.failures)-1, now.random, 0)
	confirmed := f.same >= confirmations
	switch {
	case confirmed && e.outcome == unreadable:
		return f, halt
	case r.attempts > 0 && (int(f.attempts) >= r.attempts || confirmed && (e.outcome == hopeless || e.outcome == invalid)):
		f.phase, f.due = failed, never
		return f, giveUp
	}
	return f, nothing
}

// counts reports whether a failure counts. Otherwise an outage, or a wrong setting, would move all files to
// .failed.
func (r *rules) counts(o attemptEnd, f file, now moment) bool {
	switch o {
	case unusable, hopeless:
		return true
	case refused, invalid:
		return r.ordered || now.uploaded > 0
	case unavailable:
		return now.uploaded > f.mark
	}
	return false
}
