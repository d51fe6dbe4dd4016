package session

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
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
	Offset   int64  // committed offset
	Attempts int    // requests since the last newly committed byte, including this one
	Waits    []Wait // the waits since the last newly committed byte, oldest first
	Kind     error  // sentinel error of this package
	Err      error  // cause; nil if the status is the cause
	Open     bool   // the session still exists, so that the upload can be resumed

	FromService bool // the reply came from Cloud Storage and not from a proxy

	Since time.Time // ErrRetriesExhausted: when the requests of an upload began to fail; zero in any other error

	// Early means that the driver checked the destination before it sent the last byte,
	// and a precondition did not hold. The service refused nothing, and the session still
	// exists. Kind is ErrPrecondition and Status is 412, as if the service had refused
	// the upload. Existing is the object at the destination, or nil if there is none. If
	// Early is not set, Existing is nil, because a 412 of the service does not describe
	// the object.
	Early    bool
	Existing *Object
}

// Error returns the operation, the sentinel error, the cause and the number of
// attempts.
func (e *Error) Error() string {
	if e.Early || e.Op == "" {
		return e.text()
	}
	return string(e.Op) + ": " + e.text()
}

// text is Error without the operation.
func (e *Error) text() string {
	if e.Early {
		return e.Cause()
	}
	var b strings.Builder
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
	case e.Early && e.Err != nil:
		return e.Err.Error() // the driver set the status, not a reply
	case e.Status != 0:
		name := statusText(e.Status, e.Err)
		text := strings.TrimSpace(fmt.Sprintf("%d %s", e.Status, name))
		if e.Message != "" && e.Message != name {
			text += ": " + e.Message
		}
		if e.Err != nil {
			text = strings.TrimSuffix(text, ".") + ": " + e.Err.Error() // the service ends its messages with a period
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

// errStranger means that a reply is not from Cloud Storage: it does not have the service's JSON
// or its header.
var errStranger = errors.New("reply is not from Cloud Storage")

// differsError means that an answer of the service differs from what is known. why may be nil.
type differsError struct{ why error }

func (e differsError) Error() string {
	if e.why == nil {
		return "the answer differs from what is known"
	}
	return e.why.Error()
}

func (e differsError) Unwrap() error { return e.why }

// Differs marks the error for package decide.
func (e differsError) Differs() {}

// redirectError is a redirect. Its value is the scheme and host of the target.
type redirectError string

func (e redirectError) Error() string { return "a proxy redirects to " + string(e) }

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

// fail returns the error of a reply. The table sets Offset, and the driver Attempts and Waits.
func (r *Reply) fail(kind error) *Error {
	err := r.Err
	switch {
	case err != nil:
	case r.Redirect != "":
		err = redirectError(r.Redirect)
	case r.FromProxy():
		err = errStranger
	case r.Differs:
		err = differsError{}
	}
	return &Error{Op: r.Op, Status: r.Status, Reason: r.Reason, Message: r.Message, Attempts: 1, Kind: kind, Err: err, FromService: r.FromService}
}

// Refusal returns the error of a permanent failure. It wraps one of the
// sentinel errors.
func (r Reply) Refusal() *Error { return r.fail(permanent(&r, r.Status)) }
