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

// What callers branch on, with errors.Is.
var (
	// ErrInvalid: the request itself is wrong; the same again fails again.
	ErrInvalid = errors.New("invalid request")
	// ErrCredentials: the service does not accept the credentials, also after a refresh.
	ErrCredentials = errors.New("credentials not accepted")
	// ErrPermission: the credentials are good and do not allow this.
	ErrPermission = errors.New("permission denied")
	// ErrNotFound: there is no such bucket, or nothing that speaks the API.
	ErrNotFound = errors.New("destination not found")
	// ErrQuota: a quota is used up that waiting does not refill today.
	ErrQuota = errors.New("quota used up")
	// ErrPrecondition: a precondition does not hold.
	ErrPrecondition = errors.New("precondition failed")
	// ErrOutcomeUnknown: a request whose reply was lost may have made the
	// object, or another client did, which must not be replaced.
	ErrOutcomeUnknown = errors.New("outcome unknown")
	// ErrGone: the session was lost and could not be replaced.
	ErrGone = errors.New("session is gone")
	// ErrCancelled: someone cancelled the session on the server.
	ErrCancelled = errors.New("session was cancelled")
	// ErrChecksum: the bytes at the server are not the bytes of the source.
	ErrChecksum = errors.New("checksum mismatch")
	// ErrForeignWriter: the server holds bytes, or an object, that this upload did not send.
	ErrForeignWriter = errors.New("someone else wrote to this session")
	// ErrContradiction: the server's answers contradict each other, or refuse in mid-upload.
	ErrContradiction = errors.New("the server contradicts itself")
	// ErrSourceChanged: the source is not what it was when the session began.
	ErrSourceChanged = chunk.ErrChanged
	// ErrBudget: too many failures without new committed bytes. The session is kept: run again to resume.
	// It is that of package backoff.
	ErrBudget = backoff.ErrBudget
	// ErrStalled: a request moved too few bytes for too long. It is retried, and seen only as a cause.
	ErrStalled = errors.New("transfer stalled")
	// ErrOptions: the saved upload was started with other options. It is kept.
	ErrOptions = errors.New("saved upload was started with other options")
	// ErrInUse: another process holds the upload.
	ErrInUse = errors.New("upload is in use")
)

// Wait is one wait of an upload, for the history in an [Error].
type Wait struct {
	Delay time.Duration
	Cause string // such as "503" or "connection reset by peer"
}

// Error says which exchange failed, and how far the upload had come. It wraps
// one of the sentinels of this package, and the cause.
type Error struct {
	Op       Op
	Status   int    // HTTP status, 0 when there was no reply
	Reason   string // error reason of the JSON API
	Message  string // the server's, on one line
	Offset   int64  // committed bytes
	Attempts int    // requests since the last newly committed byte, this one included
	Waits    []Wait // the waits since the last newly committed byte, oldest first
	Kind     error  // sentinel
	Err      error  // cause, nil when the status says it all
	Open     bool   // the session still exists: the upload can be resumed

	FromService bool // the answer was Cloud Storage's own
}

// Error puts the sentinel first, then what the server said.
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

// Cause is what went wrong, in a few words: the status with the server's
// message, or the transport's error.
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

// statusText is the name of a status. 308 has another meaning here than in
// net/http, unless it redirects.
func statusText(status int, err error) string {
	if _, redirects := errors.AsType[redirectError](err); status == 308 && !redirects {
		return "Resume Incomplete"
	}
	return http.StatusText(status)
}

// strangerError is an answer that is not Cloud Storage's: it has neither the
// service's JSON nor its header.
type strangerError struct{}

func (strangerError) Error() string { return "the answer did not come from Cloud Storage" }

// redirectError is a redirect to that scheme and host.
type redirectError string

func (e redirectError) Error() string { return "something on the way redirects to " + string(e) }

// Unwrap gives the sentinel and the cause to errors.Is and errors.As.
func (e *Error) Unwrap() []error {
	if e == nil { // Action.Err of an action that is no failure
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

// fail makes the error of a reply. Attempts and Waits are the driver's to add.
func (r Reply) fail(kind error, offset int64) *Error {
	err := r.Err
	if err == nil && r.Redirect != "" {
		err = redirectError(r.Redirect)
	}
	return &Error{Op: r.Op, Status: r.Status, Reason: r.Reason, Message: r.Message, Offset: offset, Attempts: 1, Kind: kind, Err: err, FromService: r.FromService}
}

// Cause is what went wrong in this exchange, in a few words for a progress
// line: a status or the transport's error.
func (r Reply) Cause() string {
	if r.Status != 0 {
		return fmt.Sprint(r.Status)
	}
	if r.Err != nil {
		return r.Err.Error()
	}
	return "no reply"
}
