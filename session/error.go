package session

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"gcsup/backoff"
	"gcsup/chunk"
)

// Errors that a caller can check with [errors.Is].
var (
	// The request and the destination.

	// ErrInvalid means that the request is invalid. A retry fails in the same way.
	ErrInvalid = errors.New("invalid request")
	// ErrCredentials means that the service rejected the credentials, even after a refresh.
	ErrCredentials = errors.New("credentials not accepted")
	// ErrPermission means that the credentials are valid but do not allow the request.
	ErrPermission = errors.New("permission denied")
	// ErrNotFound means that the bucket does not exist, or that the endpoint is not the API.
	ErrNotFound = errors.New("destination not found")
	// ErrQuota means that a quota is used up that is not refilled today.
	ErrQuota = errors.New("quota used up")
	// ErrPrecondition means that a precondition does not hold.
	ErrPrecondition = errors.New("precondition failed")

	// The session and the object.

	// ErrOutcomeUnknown means that the object may have been created by this upload or by another client. Do not replace it.
	ErrOutcomeUnknown = errors.New("outcome unknown")
	// ErrSessionLost means that the session was lost and could not be replaced.
	ErrSessionLost = errors.New("session is gone")
	// ErrCancelled means that another client canceled the session.
	ErrCancelled = errors.New("session was cancelled")
	// ErrChecksum means that the bytes on the server differ from those of the source.
	ErrChecksum = errors.New("checksum mismatch")
	// ErrUnexpectedData means that the server has bytes or an object that this upload did not send.
	ErrUnexpectedData = errors.New("someone else wrote to this session")
	// ErrProtocol means that replies of the server contradict each other, or refuse data in the middle of an upload.
	ErrProtocol = errors.New("the server contradicts itself")
	// ErrURIMismatch means that a session URI does not belong to the configured endpoint and bucket. No request is sent to it.
	ErrURIMismatch = errors.New("session URI does not belong to the configured endpoint and bucket")

	// The source and the transfer.

	// ErrSourceChanged means that the source changed since the session started. It is [chunk.ErrChanged].
	ErrSourceChanged = chunk.ErrChanged
	// ErrStalled means that a request moved too few bytes for too long. It is retried, and only seen as a cause.
	ErrStalled = errors.New("transfer stalled")
	// ErrRetriesExhausted means that too many requests failed without newly committed bytes. The upload can be resumed. It is [backoff.ErrRetriesExhausted].
	ErrRetriesExhausted = backoff.ErrRetriesExhausted

	// The saved upload.

	// ErrNoToken means that no upload is saved under the ID.
	ErrNoToken = errors.New("no such saved upload")
	// ErrCorruptToken means that the Token was truncated or edited. It cannot be used.
	ErrCorruptToken = errors.New("saved upload is damaged")
	// ErrTokenVersion means that the Token has a version or a field that this program does not know. It is kept.
	ErrTokenVersion = errors.New("saved by a newer version of this program")
	// ErrInsecurePermissions means that other users can read or write the saved upload, or that it is not a regular file.
	ErrInsecurePermissions = errors.New("saved upload is not safe to use")
	// ErrOptionsDiffer means that the saved upload was started with other options. It is kept.
	ErrOptionsDiffer = errors.New("saved upload was started with other options")
	// ErrInUse means that another process holds the lock of the upload.
	ErrInUse = errors.New("upload is in use")
)

// Wait describes one wait of an upload, for the history in an [Error].
type Wait struct {
	Delay time.Duration
	Cause string // such as "503" or "connection reset by peer"
}

// Error describes a failed exchange and the progress of the upload. It wraps
// Kind, a sentinel error of this package, and Err, the cause.
type Error struct {
	Op       Op
	Status   int    // HTTP status; 0 if there was no reply
	Reason   string // error reason of the JSON API
	Message  string // error message of the server, on one line
	Offset   int64  // committed bytes
	Attempts int    // requests since the last newly committed byte, including this one
	Waits    []Wait // the waits since the last newly committed byte, oldest first
	Kind     error  // sentinel error of this package
	Err      error  // cause; nil if the status is the cause
	Open     bool   // the session still exists, so that the upload can be resumed

	FromService bool // the answer was Cloud Storage's own
}

// Error returns the operation, the sentinel error, the cause and the number of
// attempts.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: ", e.Op)
	if e.Kind != nil {
		fmt.Fprintf(&b, "%v: ", e.Kind)
	}
	b.WriteString(e.Cause())
	if e.Attempts > 1 {
		fmt.Fprintf(&b, " (after %d attempts at offset %d)", e.Attempts, e.Offset)
	}
	return b.String()
}

// Cause returns the status with the server's message, or the error of the
// transport.
func (e *Error) Cause() string {
	switch {
	case e.Status != 0:
		text := fmt.Sprintf("%d", e.Status)
		if s := statusText(e.Status, e.Err); s != "" {
			text += " " + s
		}
		if e.Message != "" {
			text += ": " + e.Message
		}
		if e.Err != nil {
			text += ": " + e.Err.Error()
		}
		return text
	case e.Err != nil:
		return e.Err.Error()
	default:
		return "no reply"
	}
}

// statusText returns the name of a status. 308 has another name than in
// net/http, unless it is a redirect.
func statusText(status int, err error) string {
	if _, redirects := errors.AsType[redirectError](err); status == 308 && !redirects {
		return "Resume Incomplete"
	}
	return http.StatusText(status)
}

// strangerError means that a reply is not from Cloud Storage: it does not have
// the service's JSON or its header.
type strangerError struct{}

func (strangerError) Error() string { return "the answer did not come from Cloud Storage" }

// redirectError is a redirect. Its value is the scheme and host of the target.
type redirectError string

func (e redirectError) Error() string { return "something on the way redirects to " + string(e) }

// Unwrap returns the sentinel error and the cause.
func (e *Error) Unwrap() []error {
	if e == nil { // Action.Err is nil if the action is not a failure
		return nil
	}
	var errs []error
	if e.Kind != nil {
		errs = append(errs, e.Kind)
	}
	if e.Err != nil {
		errs = append(errs, e.Err)
	}
	return errs
}

// fail returns the error of a reply. The driver sets Attempts and Waits.
func (r Reply) fail(kind error, offset int64) *Error {
	err := r.Err
	if err == nil && r.Redirect != "" {
		err = redirectError(r.Redirect)
	}
	return &Error{Op: r.Op, Status: r.Status, Reason: r.Reason, Message: r.Message, Offset: offset, Attempts: 1, Kind: kind, Err: err, FromService: r.FromService}
}

// Cause returns the status or the error of the transport, for a progress line.
func (r Reply) Cause() string {
	if r.Status != 0 {
		return fmt.Sprint(r.Status)
	}
	if r.Err != nil {
		return r.Err.Error()
	}
	return "no reply"
}
