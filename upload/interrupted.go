package upload

import (
	"fmt"

	"gcsup/upload/internal/engine"
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

	why engine.Interruption
}

// Error describes the progress of the upload, and why it ended.
func (e *InterruptedError) Error() string {
	return fmt.Sprintf("upload interrupted, %d bytes acknowledged of %d sent: %s", e.Committed, e.Sent, e.why.Text)
}

// Unwrap returns the error of the context, ErrPaused or session.ErrCanceled.
func (e *InterruptedError) Unwrap() error { return e.why.Err }
