package backoff

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"
)

// maxErrorBody bounds how much of an error reply is read.
const maxErrorBody = 64 << 10

// A StatusError is an HTTP reply that is an error.
type StatusError struct {
	Code       int           // HTTP status code
	Reason     string        // reason in the JSON body, such as "rateLimitExceeded"; "" if there is none
	Message    string        // message in the JSON body; "" if there is none
	RetryAfter time.Duration // what the Retry-After header asks for, 0 if it does not
}

// Error returns the status and what the service said about it.
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

// CheckResponse returns nil for a reply with a status under 400, and else a
// *[StatusError], for which it reads up to 64 KiB of the body. It leaves
// closing the body to the caller.
func CheckResponse(resp *http.Response) error {
	if resp.StatusCode < 400 {
		return nil
	}
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // half a body is better than none
	return statusError(resp, body)
}

func statusError(resp *http.Response, body []byte) *StatusError {
	e := &StatusError{Code: resp.StatusCode}
	e.RetryAfter, _ = RetryAfter(resp.Header.Get("Retry-After"), time.Now())

	// https://cloud.google.com/storage/docs/json_api/v1/status-codes, and
	// for APIs without "errors" https://google.aip.dev/193. Proxies answer
	// in HTML: what cannot be parsed leaves the fields empty.
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

// Classify says what to do about the error of an operation: what
// [Verdict.Mark] put on it; else the verdict of [Status] on a [StatusError];
// else Transient for an error marked by [Progress]; else that of [Network].
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

// Mark returns err with the verdict v on it, for errors that [Classify] does
// not know: Transient.Mark(err) is retried, Permanent.Mark(err) is not. It
// returns nil if err is nil.
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
// rest, and counts failures from zero: report progress only for what will not
// have to be done again. It returns nil if err is nil.
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

// Reasons why an operation was not tried again, to be found in an [Error] with
// errors.Is. A third is the cause of the context's end.
var (
	// ErrPermanent: waiting does not cure this error.
	ErrPermanent = errors.New("waiting does not cure it")

	// ErrBudget: the budget is spent. The same operation may succeed later.
	ErrBudget = errors.New("retry budget spent")
)

// An Error is why [Retry] stopped. It wraps both Stop and Err.
type Error struct {
	Stop     error         // ErrPermanent, ErrBudget, or the cause of the context's end
	Err      error         // what the operation returned last
	Attempts int           // how often it was called
	Waited   time.Duration // sum of the waits
	History  []Attempt     // the last attempts that failed, at most 32, oldest first
}

// Error says why there was no further attempt, and what the last one met.
func (e *Error) Error() string {
	times := "once"
	if e.Attempts != 1 {
		times = fmt.Sprintf("%d times in %v of waiting", e.Attempts, e.Waited.Round(time.Millisecond))
	}
	return fmt.Sprintf("backoff: tried %s, not again: %v: %v", times, e.Stop, e.Err)
}

// Unwrap returns Stop and Err.
func (e *Error) Unwrap() []error { return []error{e.Stop, e.Err} }

// retryAfter returns what the server asked for, if err is a reply that did.
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
