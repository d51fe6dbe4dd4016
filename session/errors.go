package session

import (
	"errors"
	"fmt"

	"gcsup/backoff"
	"gcsup/chunk"
)

// Sentinel errors, for [errors.Is]. An upload is resumable if the driver keeps its
// saved upload, so that the next call for the same source and destination resumes it. Package
// state has the errors of saved uploads.
//
//	sentinel                what happened                                        resumable  what to do
//
//	ErrInvalid              the request is invalid                               yes        correct the request
//	ErrCredentials          the credentials were rejected, even after a refresh  yes        log in again
//	ErrPermission           the credentials do not allow the request             yes        grant the permission
//	ErrNotFound             no such bucket, or the endpoint is not the API       yes        correct the bucket or the endpoint
//	ErrQuota                a quota is exhausted that is not refilled today      yes        resume when it is refilled
//	ErrPrecondition         a precondition does not hold                         [1]        check the object at the destination
//	ErrEncryptionKey        the upload needs its encryption key                  yes        give the key of the first run
//
//	ErrOutcomeUnknown       the object may be that of another client             [4]        check the object; do not replace it
//	ErrSessionLost          the session was lost and could not be replaced       no         start over
//	ErrCanceled             another client canceled the session                  no         start over
//	ErrChecksum             bytes differ from the source, or Spec.CRC32C         no         check the source, start over
//	ErrUnexpectedData       the service has data that this upload did not send   no         stop the other client, start over
//	ErrProtocol             replies contradict each other, or refuse the data    [2]        resume once, then start over
//	ErrURIMismatch          the session URI is of another endpoint or bucket     [3]        use the endpoint of the first run
//
//	ErrSourceChanged        the source changed since the session started         yes        restore the source, or start over
//	ErrStalled              a request moved too few bytes for too long           yes        nothing: the driver retries
//	ErrRetriesExhausted     too many failures without newly committed bytes      yes        resume later
//
// In the third column, [1] means yes if [Error.Early] is set and [Spec.NoClobber] is
// not: the precondition was checked before the last byte was sent. [2] means yes if
// [Error.Open] is set: the session still exists. [3] means yes at its own endpoint. No
// request is sent to another one. [4] means that an upload with a session or in parts
// stays saved. Later calls end in the same way, until it is canceled or starts over,
// or until the object can be read.
//
// An error that wraps ErrCredentials also wraps an [AnonymousError] if the request had no
// credentials. One that wraps ErrPermission also wraps a [ScopeError] if the access scopes of
// the machine permit no uploads.  ErrStalled is always the cause of another error.
var (
	// The request and the destination.
	ErrInvalid       = errors.New("invalid request")
	ErrCredentials   = errors.New("credentials rejected")
	ErrPermission    = errors.New("permission denied")
	ErrNotFound      = errors.New("destination not found")
	ErrQuota         = errors.New("quota exhausted")
	ErrPrecondition  = errors.New("precondition failed")
	ErrEncryptionKey = errors.New("the encryption key of the upload is missing")

	// The session and the object.
	ErrOutcomeUnknown = errors.New("outcome unknown")
	ErrSessionLost    = errors.New("session lost")
	ErrCanceled       = errors.New("session canceled")
	ErrChecksum       = errors.New("checksum mismatch")
	ErrUnexpectedData = errors.New("unexpected data on the server")
	ErrProtocol       = errors.New("protocol error")
	ErrURIMismatch    = errors.New("session URI does not match the endpoint and bucket")

	// The source and the transfer.
	ErrSourceChanged    = chunk.ErrChanged
	ErrStalled          = errors.New("transfer stalled")
	ErrRetriesExhausted = backoff.ErrRetriesExhausted
)

// invalid returns an error that wraps ErrInvalid.
func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrInvalid, fmt.Errorf(format, args...))
}
