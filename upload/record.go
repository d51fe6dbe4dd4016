package upload

import (
	"context"

	"gcsup/session"
)

// record keeps the state of a run's session, so that another process can resume it.
type record interface {
	// started records that a session was opened.
	started(uri session.URI, restarts int)

	// sending is called before a request that sends the bytes from sent to to. If it
	// returns nil, the record is durable, or an earlier version of it is durable and
	// cannot be updated.
	sending(ctx context.Context, committed, sent, to int64) error

	// handed is called while a request is under way, when the bytes up to
	// offset sent were handed to the network. It does not block.
	handed(sent int64)
}

var _ record = (*sessionRecord)(nil)

// unrecorded is the record of an upload that cannot be resumed.
type unrecorded struct{}

func (unrecorded) started(session.URI, int)                           {}
func (unrecorded) sending(context.Context, int64, int64, int64) error { return nil }
func (unrecorded) handed(int64)                                       {}
