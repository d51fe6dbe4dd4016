package backoff

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"
)

// maxErrorBody is how many bytes of an error reply are read.
const maxErrorBody = 64 << 10

// A StatusError is an HTTP reply with an error status.
type StatusError struct {
	Code       int           // HTTP status code
	Reason     string        // reason in the JSON body, such as "rateLimitExceeded"; "" if there is none
	Message    string        // message in the JSON body; "" if there is none
	RetryAfter time.Duration // from the Retry-After header; 0 if there is none
}

// Error returns the status with the reason and the message of the service.
func (e *StatusError) Error() string {
	text := "HTTP " + strconv.Itoa(e.Code)
	if name := http.StatusText(e.Code); name != "" {
		text += " " + name
	}
	if e.Reason != "" {
		text += " (" + e.Reason + ")"
	}
	if e.Message != "" {
		text += ": " + e.Message
	}
	return text
}

// statusError returns the error of a reply whose body begins with body.
func statusError(resp *http.Response, body []byte) *StatusError {
	e := &StatusError{Code: resp.StatusCode}
	e.RetryAfter, _ = RetryAfter(resp.Header.Get("Retry-After"), time.Now())

	// https://cloud.google.com/storage/docs/json_api/v1/status-codes, and
	// for APIs without "errors" https://google.aip.dev/193. A proxy replies in
	// HTML, which leaves the fields empty.
	var reply struct {
		Error struct {
			Message string
			Errors  []struct{ Reason string }
			Details []struct{ Reason string }
		}
	}
	if json.Unmarshal(body, &reply) != nil {
		return e
	}
	e.Message = reply.Error.Message
	for _, list := range [][]struct{ Reason string }{reply.Error.Errors, reply.Error.Details} {
		for _, item := range list {
			if e.Reason == "" {
				e.Reason = item.Reason
			}
		}
	}
	return e
}

// Classify returns the verdict on the error of an operation. The first of these
// rules applies:
//
//   - an error marked by [Verdict.Mark] has that verdict;
//   - a [StatusError] has the verdict of [Status];
//   - an error marked by [Progress] is Transient;
//   - any other error has the verdict of [Network].
func Classify(err error) Verdict {
	if marked, ok := errors.AsType[*markedError](err); ok {
		return marked.verdict
	}
	if status, ok := errors.AsType[*StatusError](err); ok {
		return Status(status.Code, status.Reason)
	}
	if isProgress(err) {
		return Transient
	}
	return Network(err)
}

// Mark returns an error that wraps err and has the verdict v, for errors that
// [Classify] does not know. Transient.Mark(err) is retried, Permanent.Mark(err)
// is not. Mark returns nil if err is nil.
func (v Verdict) Mark(err error) error {
	if err == nil {
		return nil
	}
	return &markedError{err, v}
}

type markedError struct {
	error
	verdict Verdict
}

func (e *markedError) Unwrap() error { return e.error }

// Progress marks the error of an operation that succeeded in part, such as a
// batch with some items left. [Retry] then calls the operation again for the
// rest, and counts failures from zero. Mark an error only if the completed part
// need not be repeated. Progress returns nil if err is nil.
func Progress(err error) error {
	if err == nil {
		return nil
	}
	return &progressError{err}
}

type progressError struct{ error }

func (e *progressError) Unwrap() error { return e.error }

func isProgress(err error) bool {
	_, ok := errors.AsType[*progressError](err)
	return ok
}

// Reasons why an operation was not retried. An [Error] wraps one of them, or
// the cause of the context's end.
var (
	// ErrPermanent means that a retry cannot succeed.
	ErrPermanent = errors.New("permanent error")

	// ErrRetriesExhausted means that the budget is spent. The operation may succeed
	// later.
	ErrRetriesExhausted = errors.New("retries exhausted")
)

// An Error describes why [Retry] stopped. It wraps Stop and Err.
type Error struct {
	Stop     error         // ErrPermanent, ErrRetriesExhausted, or the cause of the context's end
	Err      error         // the last error of the operation
	Attempts int           // calls of the operation
	Waited   time.Duration // total length of the waits
	History  []Attempt     // the last failed attempts, at most 32, oldest first
}

// Error returns the number of attempts, why there was no other attempt, and the
// last error.
func (e *Error) Error() string {
	tries := "1 attempt"
	if e.Attempts != 1 {
		tries = fmt.Sprintf("%d attempts, waited %v", e.Attempts, e.Waited.Round(time.Millisecond))
	}
	return fmt.Sprintf("backoff: %s: %v: %v", tries, e.Stop, e.Err)
}

// Unwrap returns Stop and Err.
func (e *Error) Unwrap() []error { return []error{e.Stop, e.Err} }

// retryAfter returns the wait that the server asked for, or 0.
func retryAfter(err error) time.Duration {
	if status, ok := errors.AsType[*StatusError](err); ok {
		return status.RetryAfter
	}
	return 0
}

// cause returns the name under which [Counts] counts err.
func cause(err error) string {
	if status, ok := errors.AsType[*StatusError](err); ok {
		return strconv.Itoa(status.Code)
	}
	switch {
	case isProgress(err):
		return "partial"
	case isDNS(err):
		return "dns"
	case errors.Is(err, context.DeadlineExceeded), timedOut(err):
		return "timeout"
	case Network(err) == Transient:
		return "connection"
	}
	return "other"
}

func isDNS(err error) bool {
	_, ok := errors.AsType[*net.DNSError](err)
	return ok
}
