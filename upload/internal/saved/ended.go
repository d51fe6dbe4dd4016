package saved

import (
	"errors"

	"gcsup/session"
)

// Dead reports whether an error ends the session, so that the next call must open
// another one. A precondition that failed before the last byte was sent does not end
// the session.
func Dead(err error) bool {
	if e, ok := errors.AsType[*session.Error](err); ok {
		if e.Open || e.Early {
			return false
		}
		if errors.Is(e, session.ErrPrecondition) {
			return true
		}
	}
	for _, kind := range []error{
		session.ErrSessionLost, session.ErrCanceled, session.ErrChecksum,
		session.ErrUnexpectedData, session.ErrProtocol, session.ErrURIMismatch,
	} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}
