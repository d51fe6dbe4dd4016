package upload

import (
	"errors"
	"fmt"

	"gcsup/upload/internal/engine"
)

// The sentinel errors of this package, and the other errors of its calls, except the
// sentinels of packages session and state. The tables at [session.ErrInvalid] and
// [state.ErrNotFound] have those.
//
//	error                  what happened                                            resumable  what to do
//
//	*InterruptedError      its context was done, or Pause or Cancel ended it        [1]        call again with another context
//	ErrPaused              Uploader.Pause interrupted the upload                    [1]        resume it at any time
//	ErrTruncated           the source is shorter than CallOptions.Size              [1]        correct the source or the size
//	ErrNotTried            the file of a batch was not started, because of others   yes        upload it again later
//	ErrSourceNeeded        Resume: the upload is one of ReaderAt                    yes        call ReaderAt with the same identity
//	ErrIncomplete          a spooled stream can never be completed                  no         cancel it, and upload the source again
//	backoff.ErrPermanent   CallOptions.Permanent decided against a retry            yes        correct the cause
//	*session.Error         the service refused, or could not be reached             [2]        see the sentinel that it wraps
//	*session.AnonymousError  its cause is that no credentials were sent             yes        change the setting in its reason
//	*session.ScopeError    its cause is that the machine's access scopes permit no uploads  [2]  give the machine another scope
//	*state.HeldError       another process holds the lease of the upload            yes        wait until the lease runs out
//
//	chunk.ErrRead          the file or the reader failed                            [3]        correct the source
//	chunk.ErrNotRegular    the path does not name a regular file                    no         use Reader for pipes and devices
//	*fs.PathError          the file, or the directory of the store, cannot be used  [1]        correct the path or the permissions
//	fs.ErrExist            Import: the upload of this file is saved already         yes        resume that
//
// In the third column, [1] means yes if a session was saved before: see
// [InterruptedError.Resumable] and [Result.Resumable]. [2] means that the sentinel
// decides. [3] means yes for a file.
//
// In the tables of packages session and state, the driver is the [Uploader]. A
// call that needs a corrupt saved upload sets it aside ([state.ErrCorrupt]).
//
// A failed precondition is a [*session.Error] with status 412, whether the service or
// the uploader found it. If the uploader found it early, the field Existing is the
// object at the destination.
var (
	// ErrTruncated is wrapped by the error of an upload whose source ended before
	// [CallOptions].Size bytes.
	ErrTruncated = engine.ErrTruncated

	// ErrPaused is wrapped by the [*InterruptedError] of an upload that [Uploader.Pause]
	// interrupted.
	ErrPaused = errors.New("paused")

	// ErrSourceNeeded is wrapped by the error of [Uploader.Resume] for an upload that
	// [Uploader.ReaderAt] began. Resume has no source for it. A call of ReaderAt with the
	// same identity and destination, see [SavedUpload].Identity, continues the upload.
	ErrSourceNeeded = errors.New("the source must be given again")

	// ErrIncomplete is wrapped by the error of a stream in a spool whose object can never be made. The process
	// died before the input ended, the files of the spool are damaged, or bytes were removed from the spool
	// before the session was lost or the service refused the checksum. The saved upload and the files stay
	// until [Uploader.Cancel] or [Uploader.Prune] removes them.
	ErrIncomplete = errors.New("the stream is incomplete")

	// ErrNotTried is wrapped by the error of a file of a batch that was not uploaded
	// because others failed: its bucket does not exist, the credentials are not accepted,
	// or the service could not be reached. Such an error also wraps the sentinel error of
	// that reason.
	ErrNotTried = errors.New("not tried")
)

// InterruptedError is the error of an upload that was interrupted before the object
// existed: its context was done, or [Uploader.Pause] or [Uploader.Cancel] ended it. If the
// upload is saved, it is kept, except by Cancel.
//
// errors.Is finds one of [context.Canceled], [context.DeadlineExceeded], [ErrPaused] and
// [session.ErrCanceled], and nothing else. The cause of the context and the last failure
// are only in the text, because with errgroup the cause is the error of another upload.
type InterruptedError struct {
	Committed int64 // the committed offset
	Sent      int64 // bytes that were handed to the network; the service may have more than Committed
	Resumable bool  // the upload is saved: the same call, or Resume, continues it; as in [Result.Resumable]

	why engine.Interruption
}

// Error describes the progress of the upload, and why it ended.
func (e *InterruptedError) Error() string {
	return fmt.Sprintf("upload interrupted, %d bytes committed of %d sent: %s", e.Committed, e.Sent, e.why.Text)
}

// Unwrap returns the error of the context, ErrPaused or session.ErrCanceled.
func (e *InterruptedError) Unwrap() error { return e.why.Err }
