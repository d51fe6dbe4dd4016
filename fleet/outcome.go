package fleet

import (
	"context"
	"errors"
	"io/fs"

	"gcsup/internal/cli/failure"
	"gcsup/session"
	"gcsup/session/state"
	"gcsup/upload"
)

// verdict is the consequence of a file's outcome for its task.
type verdict int

const (
	finished   verdict = iota // the object is correct
	handedOver                // the upload was interrupted; another delivery will continue it
	inUse                     // another worker has the upload
	unreached                 // the service did not answer some kind of request
	failed                    // the failure counts: after WorkerOptions.Tries without progress the file becomes a dead letter
	hopeless                  // the file becomes a dead letter at once
)

// judge returns the verdict on a file whose upload ended with err. proven is the result of
// health.proves.
func judge(err error, proven bool) verdict {
	switch {
	case err == nil:
		return finished
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return handedOver
	case errors.Is(err, state.ErrInUse):
		return inUse
	case errors.Is(err, session.ErrPrecondition), errors.Is(err, session.ErrInvalid), errors.Is(err, session.ErrSourceChanged):
		return hopeless
	case errors.Is(err, session.ErrRetriesExhausted) && !proven:
		return unreached
	}
	return failed
}

// kindNoInput is the class of the error of a missing source.
const kindNoInput = "no_input"

// kindOf returns the class of an error, as in the JSON lines of gcsup.
func kindOf(err error) string {
	kind := failure.Classify(err).Kind
	switch {
	case errors.Is(err, errStale):
		kind = kindStale
	case kind != failure.LocalIO:
	case errors.Is(err, fs.ErrNotExist):
		kind = kindNoInput
	case errors.Is(err, upload.ErrNotTried):
		kind = "not_tried"
	}
	return kind
}
