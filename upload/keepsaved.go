package upload

import (
	"errors"

	"gcsup/session"
)

// keepSaved deletes or updates the saved upload, depending on err, with which the
// upload ended. unqueried reports that the server has not reported how much it holds of a
// session of another process.
func (j *job) keepSaved(err error, unqueried bool) error {
	if !j.journal.saved() {
		return err
	}
	if err == nil || dead(err) || j.spec.NoClobber && errors.Is(err, session.ErrPrecondition) {
		if derr := j.journal.discard(); derr != nil {
			if err != nil {
				return errors.Join(err, derr)
			}
			j.events.post(Event{Kind: Warning, Cause: derr.Error()})
		}
		return err
	}
	if !unqueried && !errors.Is(err, session.ErrSourceChanged) {
		// After a change of the source, its checksums are not those of the bytes that were
		// sent.
		if e, ok := errors.AsType[*session.Error](err); ok && e.Open {
			j.journal.whole.rejected(e.Offset)
		}
		_, sent, committed := j.requests.pos.load()
		j.journal.whole.ended(committed, sent)
	}
	return err
}

// dead reports whether an error ends the session, so that the next call must open
// another one. A precondition that failed before the last byte was sent does not end
// the session.
func dead(err error) bool {
	if _, ok := errors.AsType[*interruption](err); ok {
		return false // also if Cancel has interrupted it, and will end the session itself
	}
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
