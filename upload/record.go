package upload

import (
	"context"

	"gcsup/session"
)

// record is where a run keeps what another process needs to resume its session.
type record interface {
	// started notes that a session was opened.
	started(uri session.URI, restarts int)

	// sending is called before a request that sends the bytes from sent to
	// to, with the committed offset. When it returns nil, the record is
	// durable, or it was and cannot be updated.
	sending(ctx context.Context, committed, sent, to int64) error

	// handed is called while a request is under way, when the bytes up to
	// offset sent were handed to the network. It does not block.
	handed(sent int64)

	// sent is called after a request.
	sent()
}

// unrecorded is the record of an upload that cannot be resumed.
type unrecorded struct{}

func (unrecorded) started(session.URI, int)                           {}
func (unrecorded) sending(context.Context, int64, int64, int64) error { return nil }
func (unrecorded) handed(int64)                                       {}
func (unrecorded) sent()                                              {}
