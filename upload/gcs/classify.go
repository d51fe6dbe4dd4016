package gcs

import (
	"errors"
	"time"

	"google.golang.org/api/googleapi"

	"gcsup/backoff"
)

// Classify is [backoff.Classify] for errors that may be the official library's,
// such as those of [Client.Storage]. It is for backoff.Options:
//
//	attrs, err := backoff.Retry(ctx, backoff.CloudStorage(), stat, &backoff.Options{Classify: gcs.Classify})
//
// Switch the library's own retries off (storage.WithPolicy(storage.RetryNever)),
// or each try is several. For the Retry-After header return [StatusError] from
// the operation.
func Classify(err error) backoff.Verdict { return backoff.Classify(StatusError(err)) }

// StatusError returns err with a [*backoff.StatusError] in it, if it is an error
// reply that the official library returned, and else err itself.
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

// libraryError is an error of the official library, with what package backoff
// knows of it.
type libraryError struct {
	error
	status *backoff.StatusError
}

func (e *libraryError) Unwrap() []error { return []error{e.error, e.status} }
