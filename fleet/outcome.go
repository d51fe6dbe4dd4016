package fleet

import (
	"context"
	"errors"
	"io/fs"

	"gcsup/chunk"
	"gcsup/session"
	"gcsup/session/bucketstore"
	"gcsup/upload"
)

// verdict is what the outcome of a file means for its task.
type verdict int

const (
	finished   verdict = iota // the object is right
	handedOver                // the upload was interrupted; another delivery continues
	held                      // another worker has it
	unreached                 // the service answered no request; the file may be right
	failed                    // it counts: after some failures without progress the file is a dead letter
	hopeless                  // the file is a dead letter at once
)

// judge returns the verdict on a file whose upload ended with err. answered reports
// whether the service answered any request of the delivery.
func judge(err error, answered bool) verdict {
	switch {
	case err == nil:
		return finished
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return handedOver
	case errors.Is(err, session.ErrInUse):
		return held
	case errors.Is(err, session.ErrPrecondition), errors.Is(err, session.ErrInvalid), errors.Is(err, session.ErrSourceChanged):
		return hopeless
	case errors.Is(err, session.ErrRetriesExhausted) && !answered:
		return unreached
	}
	return failed
}

// kindNoInput is the class of a source that is missing.
const kindNoInput = "no_input"

// kinds are the classes of errors, as in the JSON lines of gcsup. The first match
// counts.
var kinds = []struct {
	is   error
	kind string
}{
	{session.ErrInUse, "in_use"},
	{session.ErrRetriesExhausted, "retries_exhausted"},
	{session.ErrSourceChanged, "source_changed"},
	{session.ErrChecksum, "checksum"},
	{session.ErrUnexpectedData, "foreign_writer"},
	{session.ErrProtocol, "contradiction"},
	{session.ErrOptionsDiffer, "options"},
	{bucketstore.ErrSealed, "state_key"},
	{session.ErrCorruptToken, "damaged"},
	{session.ErrTokenVersion, "newer_version"},
	{chunk.ErrNotRegular, kindNoInput},
	{fs.ErrNotExist, kindNoInput},
	{session.ErrNotFound, "not_found"},
	{session.ErrSessionLost, "session_gone"},
	{session.ErrCanceled, "cancelled"},
	{session.ErrQuota, "quota"},
	{session.ErrOutcomeUnknown, "outcome_unknown"},
	{session.ErrPrecondition, "precondition"},
	{session.ErrCredentials, "credentials"},
	{session.ErrPermission, "permission"},
	{session.ErrURIMismatch, "endpoint"},
	{session.ErrInvalid, "invalid"},
	{upload.ErrNotTried, "not_tried"},
}

// kindOf returns the class of an error.
func kindOf(err error) string {
	for _, k := range kinds {
		if errors.Is(err, k.is) {
			return k.kind
		}
	}
	return "local_io"
}
