package engine

import (
	"context"

	"gcsup/session"
)

// Recorder keeps the state of a run's session, so that another process can resume it.
type Recorder interface {
	// Started records that a session was opened.
	Started(uri session.URI, restarts int)

	// Sending is called before a request that sends the bytes from sent to to. If it
	// returns nil, the record is durable, or an earlier version of it is durable and
	// cannot be updated.
	Sending(ctx context.Context, committed, sent, to int64) error

	// Handed is called while a request is under way, when the bytes up to
	// offset sent were handed to the network. It does not block.
	Handed(sent int64)
}

// Unrecorded is the Recorder of an upload that cannot be resumed.
type Unrecorded struct{}

func (Unrecorded) Started(session.URI, int)                           {}
func (Unrecorded) Sending(context.Context, int64, int64, int64) error { return nil }
func (Unrecorded) Handed(int64)                                       {}
