package engine

import (
	"context"
	"time"

	"gcsup/session"
)

// Notes gets what happens to an upload. Its methods do not block.
type Notes interface {
	Note(n Note)

	// Flowing is called when bytes were handed to the network.
	Flowing()

	// Committed is called when the server has committed more bytes.
	Committed()

	// WantsExchange reports whether exchanges of requests with ctx are described. exchange gets
	// the description when the decision is known.
	WantsExchange(ctx context.Context) bool
	Exchange(x *Exchange)
}

// Note is something that happened to an upload, or to one part of a file.
type Note struct {
	Kind    NoteKind
	Part    int           // the number of the part, from 1; 0 for the whole file
	Delay   time.Duration // waiting
	Retry   int           // waiting: number of consecutive failures, from 1
	Blocked bool          // waiting: the circuit breaker blocks the upload
	Cause   string        // waiting, restarted, warning: the reason, for people
	Err     error         // waiting: the failure
}

// NoteKind is what a note reports.
type NoteKind int

const (
	Started NoteKind = iota
	Restarted
	PartDone
	Waiting
	Warning
)

// Exchange describes one request, its reply and what follows.
type Exchange struct {
	Context context.Context // of the request
	Part    int             // as in [Note]
	Attempt int             // number of requests since the last progress, including this one
	Began   time.Time
	Took    time.Duration
	Offset  int64 // of the object data in the request; without object data, the committed offset before the request
	Sent    int64 // bytes of object data that were handed to the network
	Reply   session.Reply
	Next    *session.Action // the decision after the reply; nil if the upload ended, or if nothing depends on it
}
