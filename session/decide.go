package session

import (
	"errors"
	"fmt"
	"time"

	"gcsup/backoff"
)

// Decide returns the next action after the reply to the last exchange. It is a pure
// function, and contains all knowledge of the protocol's failures.
//
//	reply                                    action
//	200, 201 with an object                  done: compare it with the source. To the first
//	                                         query of an adopted session: check the
//	                                         destination, because the object may have
//	                                         been deleted since
//	200, 201 without one (lost, cut, HTML)   wait, query
//	200, 201 with an object of other bytes   wait, query; again: unexpected data. To an
//	                                         insert: unexpected data
//	308, Range advanced                      continue there; the budget is restored
//	308, Range did not advance               after data: wait, query. After a query: send
//	308, Range has all bytes                 finalize, repeatedly, with waits
//	308, no Range                            wait, query; then accept that no byte is committed
//	308, Range beyond what was ever sent     wait, query; again: unexpected data, or a new
//	                                         session if Sent may not have been saved
//	308, Range behind what was committed     fail: protocol error
//	308 to a start                           fail
//	408, 429, 5xx, rate-limit 403            wait, query (never data)
//	no reply, for any reason                 wait, query. To a first start, insert or stat,
//	                                         before the service was reached: fail if the
//	                                         error is permanent
//	no reply, on a reused connection         query at once, the first time
//	401                                      refresh the credentials, query; again: fail
//	400, 404, 410, others in mid-upload      wait, query, and if the query confirms it:
//	  404, 410                               if the object may exist, check the destination.
//	                                         Unless this upload made it: a new session from
//	                                         byte 0, three times at most
//	  410 with another 4xx in its body       like that status
//	  400, 405, 409, 411, 413, 416           fail. If the session is still open, and a resume
//	                                         fails at the same offset: a new session
//	412, or 304 for a NotMatch precondition  if the object may exist, check the destination.
//	                                         Unless this upload made it: fail
//	400 or 412 whose message names a hash,   the bytes were damaged: a new session, as after 404
//	or a confirmed 410 with it in its body
//	308, a checksum not of the source        the same
//	499                                      the session was canceled: fail
//	412, 499 of a temporary object           wait, query; if the query confirms it: like 404
//	3xx, other 2xx, 4xx not of the service   wait, query, if the service answered before;
//	                                         otherwise fail
//	other                                    fail
//
// An insert without a precondition is not repeated at once if its outcome is not known:
// it could replace what another client wrote in between. The destination is checked
// first. The next insert has a guard, see [State.Guard]:
//
//	no object                                insert, if there is still none
//	the source's bytes, since our attempt    done
//	an object older than our attempt,        insert, if it is still there
//	or one with the generation of the guard
//	another object, since our attempt        fail: the outcome is unknown
//	no permission to read it                 insert, if there is none; after a 412: fail,
//	                                         the outcome is unknown
//
// If an insert is guarded from the beginning (see [State.Guarded]), and is refused with 412
// before any attempt has an unknown outcome, another client changed the destination. The
// caller did not set the guard, so this is not a failure. The destination is checked:
//
//	the source's bytes                       done; State.MayExist is false
//	anything else                            insert, without the guard
//
// If an adopted session is finished, the destination is checked:
//
//	an object                                done
//	no object                                wait, check; again: a new session from byte 0
//	no permission to read it                 fail: the outcome is unknown
//
// Sources, reply by reply:
// https://cloud.google.com/storage/docs/performing-resumable-uploads#handling_errors,
// https://cloud.google.com/storage/docs/json_api/v1/status-codes,
// https://github.com/googleapis/java-storage (JsonResumableSessionFailureScenario),
// https://github.com/googleapis/google-cloud-cpp/issues/8868 (all bytes, not final),
// https://github.com/googleapis/google-cloud-cpp/issues/7877 (308 without Range),
// https://github.com/googleapis/google-cloud-cpp/issues/9750 (late commit).
//
// The driver stops when its budget for State.Failures is spent. Decide does not
// depend on their number.
func Decide(s State, r Reply) (State, Action) {
	a := s.decide(&r)
	if a.Err != nil {
		a.Err.Offset = s.Committed
	}
	return s, a
}

func (s *State) decide(r *Reply) Action {
	s.Sent = max(s.Sent, r.Sent)
	if (r.Op == OpFinalize || r.Op == OpInsert) && r.mayHaveActed() {
		s.MayExist = true
	}
	if r.Status != 308 || r.Redirect != "" {
		s.beyond, s.rangeless = false, false
	}
	if r.Op == OpStat {
		return s.checked(r)
	}
	if r.Open() && r.Differs {
		return s.restart(r, ErrChecksum)
	}
	status := r.Status
	if r.Inner >= 400 && r.Inner < 500 && r.Inner != 404 && r.Inner != 410 && backoff.Status(r.Inner, r.Reason) == backoff.Permanent {
		status = r.Inner // the cause decides
	}
	if r.notModified() {
		status = 412
	}
	if r.strange(s.begun(r)) {
		return s.again(r)
	}
	if family := s.destructive(r); family != 0 {
		if s.suspect != family || r.Op != OpQuery {
			s.suspect = family
			if family == 400 {
				s.doubt = *r
				s.doubt.Sent = 0
			}
			return s.again(r)
		}
	}
	if r.damaged(status) && !r.forbidden() {
		return s.restart(r, ErrChecksum)
	}
	switch status {
	case 200, 201:
		return s.complete(r)
	case 308:
		return s.incomplete(r)
	case 404, 410:
		return s.gone(r)
	case 412:
		if !r.forbidden() {
			return s.check(r)
		}
	case 499:
		if s.Temporary && !r.Op.begins() {
			return s.gone(r)
		}
		return r.end(ErrCanceled)
	}
	switch verdict(r, s.begun(r)) {
	case backoff.Transient:
		return s.again(r)
	case backoff.Credentials:
		if r.Op == OpInsert {
			s.doubt = *r
		}
		return s.refresh(r, s.afterFailure(r))
	}
	return r.end(permanent(r, status))
}

// destructive returns 404 or 400, the family of a status that would end the session,
// or 0. One such answer is not enough to discard committed bytes.
func (s *State) destructive(r *Reply) int {
	switch {
	case r.Op != OpPut && r.Op != OpQuery && r.Op != OpFinalize:
		return 0
	case r.Status == 404 || r.Status == 410:
		return 404
	case r.damaged(r.Status):
		return 0
	case s.Temporary && (r.Status == 412 || r.Status == 499):
		return 404
	case r.Status == 401 || r.Status == 412 || r.Status == 429 || r.Status == 499 || r.denied():
		return 0
	case ineffective(r.Status):
		return 400
	}
	return 0
}

// complete handles a reply of success.
func (s *State) complete(r *Reply) Action {
	switch {
	case r.Op == OpStart && !r.URI.IsZero():
		s.Committed, s.Sent, s.refreshed = 0, 0, false
		return Action{Step: s.next()}
	case r.Op == OpStart:
		return s.again(r)
	case r.Object == nil:
		// The session may be finished, and the description was lost. A finished session
		// answers every query with it.
		s.MayExist = true
		return s.again(r)
	case s.Size >= 0 && r.Object.Size != s.Size, r.Differs:
		if r.Err == nil && s.Size >= 0 && r.Object.Size != s.Size {
			r.Err = fmt.Errorf("the object has %d bytes, the source %d", r.Object.Size, s.Size)
		}
		r.Err = differsError{r.Err}
		if r.Op != OpInsert && s.suspect != 200 {
			s.suspect = 200
			return s.again(r)
		}
		return r.end(ErrUnexpectedData)
	}
	if s.Adopted && !s.Temporary && r.Op == OpQuery {
		s.finished, s.MayExist = r.Object, true
		return Action{Step: Check}
	}
	return Action{Step: Done, Object: r.Object}
}

// confirm handles the reply to the check of the destination after another process has finished the
// session. The service describes the object of a finished session even if the object was deleted
// since.
func (s *State) confirm(r *Reply) Action {
	switch found := r.Status == 200 && r.Object != nil; {
	case found: // perhaps already another object
		return Action{Step: Done, Object: s.finished}
	case r.Status == 200, verdict(r, true) == backoff.Transient:
		return s.again(r)
	case verdict(r, true) == backoff.Credentials && !s.refreshed:
		return s.refresh(r, Check)
	case r.Status == 404 && !s.deleted:
		s.deleted = true
		return s.again(r)
	case r.Status == 404:
		return s.restart(r, ErrSessionLost)
	case r.Status == 0:
		return r.end(permanent(r, 0))
	}
	r.Err = errNotRead // no permission, usually
	return r.end(ErrOutcomeUnknown)
}

// errNotRead means that a session was found finished, and that its object cannot be looked up.
var errNotRead = errors.New("the upload was finished before, but the object cannot be read: it may have been deleted since")

// incomplete handles a 308: the session is open and the server holds r.Committed
// bytes.
func (s *State) incomplete(r *Reply) Action {
	if r.Op == OpStart || r.Op == OpInsert {
		if r.Redirect != "" {
			return r.end(ErrNotFound)
		}
		return r.end(ErrProtocol)
	}
	held := r.Committed
	if held < 0 {
		// No byte is committed, or the header was lost on the way, which happens
		// once in a few million uploads. A query shows which. If bytes were
		// committed before, a second query is necessary.
		if r.Op != OpQuery || s.Committed > 0 && !s.rangeless {
			s.rangeless = r.Op == OpQuery
			return s.again(r)
		}
		held = 0
	}
	s.rangeless = false
	switch {
	case held < s.Committed:
		r.Err = fmt.Errorf("server reports %d committed bytes, but reported %d before", held, s.Committed)
		return r.end(ErrProtocol)
	case held > s.Sent || s.Size >= 0 && held > s.Size:
		if s.beyond {
			if s.Adopted && s.Replayable && s.Restarts < maxRestarts {
				return s.restart(r, ErrSessionLost)
			}
			r.Err = fmt.Errorf("server reports %d committed bytes, but only %d were sent", held, s.Sent)
			return r.end(ErrUnexpectedData)
		}
		s.beyond = true
		return s.again(r)
	}
	s.beyond = false
	moved := held > s.Committed
	s.Committed = held
	if moved {
		s.Failures, s.refreshed, s.reconnected = 0, false, false
	}
	if s.suspect == 400 && !moved && s.doubt.Op != OpQuery {
		return s.rejected()
	}
	s.suspect, s.doubt = 0, Reply{}
	if r.Op == OpQuery || moved && s.next() == Send {
		return Action{Step: s.next()}
	}
	if r.Op == OpPut && s.next() == Finish {
		return Action{Step: Finish}
	}
	// Data was sent and none of it was committed, or the last request did not
	// finish the object.
	return s.again(r)
}

// rejected handles data that the service refused in a session that is open.
func (s *State) rejected() Action {
	r := s.doubt
	s.suspect, s.doubt = 0, Reply{}
	if s.Rejected && s.RejectedAt == s.Committed && s.Replayable && s.Restarts < maxRestarts {
		return s.restart(&r, ErrSessionLost)
	}
	s.Rejected, s.RejectedAt = true, s.Committed
	a := r.end(ErrProtocol)
	a.Err.Open = true
	return a
}

// next returns the step if nothing is wrong.
func (s *State) next() Step {
	if s.Size >= 0 && s.Committed == s.Size && s.Size > 0 {
		return Finish
	}
	return Send
}

// again is the action after a failure that may be temporary, such as 408, 429 and 5xx: it backs off, and then finds out
// what the server has, see afterFailure.
func (s *State) again(r *Reply) Action {
	if r.Op == OpInsert {
		s.doubt = *r
	}
	a := s.trouble.again(r, s.afterFailure(r))
	if a.Wait {
		s.Failures++
	}
	return a
}

// afterFailure returns the step after a request whose outcome is not known: the
// same request if repeating it is harmless, otherwise a query.
func (s *State) afterFailure(r *Reply) Step {
	switch {
	case r.Op == OpInsert && s.Unconditional && s.MayExist:
		return Check
	case r.Op == OpStart || r.Op == OpInsert:
		return Begin
	case r.Op == OpStat:
		return Check
	case r.Op == OpFinalize && r.Status == 308 && r.Committed == s.Size && s.next() == Finish:
		return Finish // all bytes are committed, and the object is not final
	}
	return Query
}

// gone handles a bucket or a session that does not exist.
func (s *State) gone(r *Reply) Action {
	if r.Op == OpStart || r.Op == OpInsert {
		return r.end(ErrNotFound)
	}
	if s.MayExist {
		return s.check(r)
	}
	return s.restart(r, ErrSessionLost)
}

// restart begins a new session, which sends all bytes again. If that is not possible, kind is the
// failure: the session was lost, or its bytes were damaged.
func (s *State) restart(r *Reply, kind error) Action {
	if !s.Replayable || s.Restarts >= maxRestarts {
		return r.end(kind)
	}
	confirmed := r.Op == OpQuery && s.suspect == 404 // after a wait
	s.Restarts++
	s.Committed, s.Sent, s.refreshed = 0, 0, false
	s.MayExist = s.MayExist && r.Op == OpInsert // a lost session made no object, but an earlier insert may have
	s.Adopted, s.Rejected, s.RejectedAt = false, false, 0
	s.reconnected, s.suspect, s.doubt, s.finished, s.deleted = false, 0, Reply{}, nil, false
	a := Action{Step: Begin, RetryAfter: r.RetryAfter, Err: r.fail(nil)}
	if r.Inner == 429 || r.Inner == 403 {
		// The session ended because of a rate limit on the object, which also
		// applies to a new session.
		a.RetryAfter = max(a.RetryAfter, 30*time.Second)
	}
	if a.Wait = !confirmed || a.RetryAfter > 0; a.Wait {
		s.Failures++
	}
	return a
}

// check checks the destination before it accepts a refusal: a request whose reply
// was lost may have made the object.
func (s *State) check(r *Reply) Action {
	s.doubt = *r
	if !s.MayExist && !s.Temporary && !(s.guarded && r.unmet()) {
		return s.unmade()
	}
	return Action{Step: Check, Err: r.fail(nil)}
}

// checked handles the reply to the check of the destination.
func (s *State) checked(r *Reply) Action {
	if s.finished != nil {
		return s.confirm(r)
	}
	found := r.Status == 200 && r.Object != nil
	older := r.Older || found && s.guarded && r.Object.Generation == s.guard
	switch {
	case found && r.Ours && (!older || s.Temporary):
		return Action{Step: Done, Object: r.Object}
	case r.Status == 200 && !found, verdict(r, true) == backoff.Transient:
		return s.again(r)
	case s.Temporary && found:
		r.Err = errors.New("another client wrote the temporary object")
		return r.end(ErrUnexpectedData)
	case verdict(r, true) == backoff.Credentials && !s.refreshed:
		return s.refresh(r, Check)
	case !s.Unconditional:
		return s.unmade() // no object, another client's object, or no permission
	case r.Status == 0:
		return r.end(permanent(r, 0))
	case !s.MayExist:
		s.guarded, s.doubt = false, Reply{}
		return Action{Step: Begin}
	case found && !older:
		return s.doubt.end(ErrOutcomeUnknown)
	case found:
		return s.insertGuarded(r.Object.Generation)
	case r.Status != 404 && s.doubt.unmet():
		return s.doubt.end(ErrOutcomeUnknown) // no permission to read
	}
	return s.insertGuarded(0)
}

// insertGuarded inserts the object again, with the precondition that the
// destination has the given generation.
func (s *State) insertGuarded(generation int64) Action {
	a := Action{Step: Begin}
	if s.doubt.unmet() {
		// There was no wait yet.
		s.Failures++
		a.Wait, a.Err = true, s.doubt.fail(nil)
	}
	s.guarded, s.guard, s.doubt = true, generation, Reply{}
	return a
}

// unmade accepts the refusal: no request of this upload made the object.
func (s *State) unmade() Action {
	r := s.doubt
	s.doubt = Reply{}
	if r.unmet() && !s.Temporary {
		return r.end(ErrPrecondition)
	}
	return s.restart(&r, ErrSessionLost)
}

// begun reports whether the service answered before the reply r: it opened a session,
// or answered another request of the driver.
func (s *State) begun(r *Reply) bool { return r.Reached || !r.Op.begins() || s.Restarts > 0 }
