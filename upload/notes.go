package upload

import (
	"context"
	"time"

	"gcsup/session"
)

// notes gets what happens to an upload. Its methods do not block.
type notes interface {
	note(n note)

	// flowing is called when bytes were handed to the network.
	flowing()

	// committed is called when the server has committed more bytes.
	committed()

	// wantsExchange reports whether exchanges of requests with ctx are described. exchange gets
	// the description when the decision is known.
	wantsExchange(ctx context.Context) bool
	exchange(x *exchangeNote)
}

// note is something that happened to an upload, or to one part of a file.
type note struct {
	kind  noteKind
	part  int           // the number of the part, from 1; 0 for the whole file
	delay time.Duration // waiting
	retry int           // waiting: number of consecutive failures, from 1
	held  bool          // waiting: the gate holds the upload
	cause string        // waiting, restarted, warning: the reason, for people
	err   error         // waiting: the failure
}

// noteKind is what a note reports.
type noteKind int

const (
	noteStarted noteKind = iota
	noteResumed
	noteRestarted
	notePartDone
	noteWaiting
	noteWarning
)

// exchangeNote describes one request, its reply and what follows.
type exchangeNote struct {
	ctx     context.Context // of the request
	part    int             // as in [note]
	attempt int             // number of requests since the last progress, including this one
	began   time.Time
	took    time.Duration
	offset  int64 // of the object data in the request; without object data, the committed offset before the request
	sent    int64 // bytes of object data that were handed to the network
	reply   session.Reply
	next    *session.Action // the decision after the reply; nil if the upload ended, or if nothing depends on it
}
