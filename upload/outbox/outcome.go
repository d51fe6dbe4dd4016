package outbox

import (
	"errors"
	"slices"

	"gcsup/chunk"
	"gcsup/internal/decide"
	"gcsup/session"
	"gcsup/session/state"
	"gcsup/upload"
)

// errAltered is the error of a file that is no longer the one that was found to be complete.
var errAltered = errors.New("the file changed before it was read")

// ofFile are the errors that are about one file, and that no other file is expected to have.
var ofFile = []error{chunk.ErrOpen, chunk.ErrRead, chunk.ErrNotRegular, state.ErrOptionsDiffer, state.ErrCorrupt, upload.ErrTruncated}

// ofService are the errors with which the service refuses one file. If it refuses the first one, the settings
// may be wrong for all.
var ofService = []error{
	session.ErrPrecondition, session.ErrChecksum, session.ErrEncryptionKey, session.ErrUnexpectedData, session.ErrOutcomeUnknown,
}

// refusal is what a failed request says, as far as the outcome depends on it.
type refusal struct {
	reading   bool // the object could not be read because a permission is missing
	protected bool // the object cannot be replaced because of a hold or a retention
	local     bool // there was no request
}

// refusalOf returns what the request that failed with err says.
func refusalOf(err error) refusal {
	e, ok := errors.AsType[*session.Error](err)
	if !ok {
		return refusal{local: true}
	}
	return refusal{reading: e.Op == session.OpStat && e.FromService && errors.Is(e, session.ErrPermission), protected: decide.Protected(e)}
}

// ending is what is known of an attempt that ended.
type ending struct {
	stopping bool  // the outbox stops
	keep     bool  // the file stays after its upload
	gone     bool  // there is no such file
	err      error // of the upload
	left     error // why the file is still there, although its object was verified
}

// judge returns how an attempt ended.
func judge(e ending) attemptEnd {
	err := e.err
	switch {
	case err == nil && e.left == nil && e.keep:
		return recorded
	case err == nil && e.left == nil:
		return disposed
	case err == nil:
		err = e.left
	}
	switch {
	case e.stopping:
		return interrupted
	case errors.Is(err, errAltered), errors.Is(err, session.ErrSourceChanged), errors.Is(err, chunk.ErrChanged), openForWriting(err):
		return altered
	case e.gone:
		return vanished
	}
	is := func(sentinel error) bool { return errors.Is(err, sentinel) }
	failed := refusalOf(err)
	switch {
	case e.err != nil && noSpace(err):
		return full
	case exhausted(err):
		return unavailable
	case failed.reading:
		return unreadable
	case failed.protected, failed.local && is(session.ErrInvalid), e.left != nil && badName(e.left):
		return hopeless // Open has checked the settings, so that what is invalid without a request is the name or the size
	case is(session.ErrInvalid):
		return invalid
	case slices.ContainsFunc(ofFile, is):
		return unusable
	case slices.ContainsFunc(ofService, is):
		return refused
	}
	return unavailable
}
