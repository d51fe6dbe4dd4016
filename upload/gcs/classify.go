package gcs

import (
	"errors"
	"time"

	"google.golang.org/api/googleapi"

	"gcsup/backoff"
)

// Classify is [backoff.Classify] for errors of the official library, such as those
// of [Client.Storage]. Use it in backoff.Options:
//
//	attrs, err := backoff.Retry(ctx, backoff.Policy{}, stat, &backoff.Options{Classify: gcs.Classify})
//
// Disable the library's own retries with storage.WithPolicy(storage.RetryNever).
// Otherwise each attempt makes several requests. To honor the Retry-After header, return
// [StatusError] from the operation.
func Classify(err error) backoff.Verdict { return backoff.Classify(StatusError(err)) }

// StatusError returns an error that wraps err and a [*backoff.StatusError] if err
// is an error reply from the official library. Otherwise it returns err.
func StatusError(err error) error {
	e, ok := errors.AsType[*googleapi.Error](err)
	if !ok {
		return err
	}
	if _, ok := errors.AsType[*backoff.StatusError](err); ok {
		return err
	}
	status := &backoff.StatusError{Code: e.Code, Message: e.Message}
	if len(e.Errors) > 0 {
		status.Reason = e.Errors[0].Reason
	}
	status.RetryAfter, _ = backoff.RetryAfter(e.Header.Get("Retry-After"), time.Now())
	return &libraryError{err, status}
}

// libraryError is an error of the official library and the same reply as an error
// of package backoff.
type libraryError struct {
	error
	status *backoff.StatusError
}

func (e *libraryError) Unwrap() []error { return []error{e.error, e.status} }
