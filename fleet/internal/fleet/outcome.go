package fleet

import (
	"context"
	"errors"

	"gcsup/internal/errkind"
	"gcsup/session"
	"gcsup/session/state"
)

// verdict is the consequence of a file's outcome for its task.
type verdict int

const (
	finished   verdict = iota // the object is correct
	handedOver                // the upload was interrupted; another delivery will continue it
	inUse                     // another worker has the upload
	unreached                 // the service did not answer some kind of request
	failed                    // the failure counts: after WorkerOptions.MaxFailures without progress the file becomes a dead letter
	hopeless                  // the file becomes a dead letter at once
)

// judge returns the verdict on a file whose upload ended with err. proven is the result of
// health.proves. ended reports whether the delivery was ended. Otherwise a timeout is that of the network.
func judge(err error, proven, ended bool) verdict {
	switch {
	case err == nil:
		return finished
	case ended && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)):
		return handedOver
	case errors.Is(err, state.ErrInUse):
		return inUse
	case errors.Is(err, session.ErrPrecondition), errors.Is(err, session.ErrInvalid):
		return hopeless
	case errors.Is(err, session.ErrRetriesExhausted) && !proven:
		return unreached
	}
	return failed
}

// kindOf returns the kind of an error, as in the JSON lines of gcsup.
func kindOf(err error) string {
	switch {
	case errors.Is(err, errStale):
		return kindStale
	case errors.Is(err, ErrEndpoint):
		return kindEndpoint
	case errors.Is(err, ErrLimits):
		return kindLimits
	case errors.Is(err, ErrSignature):
		return kindSignature
	}
	return errkind.Of(err)
}

// ownKinds are the kinds of errors whose reason may be the worker: its machine, its mounts, its
// credentials or its options.
var ownKinds = map[string]bool{
	errkind.LocalIO: true, errkind.NoInput: true, kindStale: true, kindEndpoint: true, kindLimits: true, kindSignature: true, "source_changed": true, "permission": true, "credentials": true, "not_found": true,
	"uri_mismatch": true, "state_key": true, "insecure_permissions": true,
}

// ofWorker reports whether the reason of an outcome may be the worker.
func ofWorker(o outcome) bool { return ownKinds[kindOf(o.err)] }
