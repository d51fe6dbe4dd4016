package upload

import (
	"context"
	"errors"
	"fmt"
)

// InterruptedError is the error of an upload that was interrupted before the object
// existed: its context was done, or [Uploader.Pause] or [Uploader.Cancel] ended it. If the
// upload is saved, it is kept, except by Cancel.
//
// errors.Is finds the error of the context, [context.Canceled] or
// [context.DeadlineExceeded], or instead [ErrPaused] or [session.ErrCanceled], and nothing
// else. The cause of the context and the last failure are only in the text, because they
// may be errors of another upload.
type InterruptedError struct {
	Committed int64 // bytes that the server acknowledged
	Sent      int64 // bytes that were handed to the network; the server may hold more than it acknowledged
	Resumable bool  // the upload is saved: the same call, or Resume, continues it; as in [Result.Resumable]

	of   *requester // the upload; the cause of ctx may belong to another one
	err  error      // of the context, or of the call that ended the upload
	text string
}

// stopped is the cause of the context of an upload that a call of its Uploader ended. It
// has no Unwrap: an error of a request that has this cause is not the service's answer.
type stopped struct{ error }

// newInterrupted returns the error of an upload that ctx ended. last is the last
// failure before that, or nil.
func newInterrupted(ctx context.Context, of *requester, last error) *InterruptedError {
	_, sent, committed := of.pos.load()
	e := &InterruptedError{Committed: committed, Sent: max(sent, committed), of: of, err: ctx.Err()}
	cause := context.Cause(ctx)
	if by, ok := cause.(*stopped); ok {
		e.err = by.error
	}
	e.text = cause.Error()
	if last != nil && !errors.Is(last, cause) && !errors.Is(last, e.err) {
		e.text += " (before that: " + last.Error() + ")"
	}
	return e
}

// Error describes the progress of the upload, and why it ended.
func (e *InterruptedError) Error() string {
	return fmt.Sprintf("upload interrupted, %d bytes acknowledged of %d sent: %s", e.Committed, e.Sent, e.text)
}

// Unwrap returns the error of the context, ErrPaused or session.ErrCanceled.
func (e *InterruptedError) Unwrap() error { return e.err }
