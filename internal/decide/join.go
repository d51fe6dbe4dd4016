package decide

import (
	"errors"

	"gcsup/session"
)

// Join is the state of making one object from parts that the service has: by a
// compose, or by completing a multipart upload.
type Join struct {
	// Seen is the generation of the object at the destination before the parts are joined;
	// 0 if there is none. A compose replaces only this object, unless Pinned is set.
	Seen int64

	// Pinned reports that the caller named the generation that is replaced.
	Pinned bool

	// Temporary reports that the object is one that only this upload writes.
	Temporary bool

	// Unconditional reports that the request replaces any object at the destination, as a
	// completion does. It is not repeated before the service was asked which parts it has.
	Unconditional bool

	// MayExist reports that a request was sent whose outcome is not known. An object that is
	// neither that of the parts nor the one in Seen may then have replaced that of the parts.
	// The driver sets it if an earlier process may have sent such a request.
	MayExist bool

	trouble
	doubt   session.Reply // the refusal that made a check of the destination necessary
	refused doubt         // the refusal that the next one confirms
	foreign int           // how often another client replaced the object
}

// maxForeign bounds how often parts are joined again because another client replaced the
// object at the destination.
const maxForeign = 3

// Decide returns the next action after the reply to a request that joins parts (Finish),
// or that reads the metadata of the object at the destination (Check). It is a pure
// function.
//
// For the reply to the first, the driver sets Reply.Differs if the object is not that of the
// parts. For the reply to the second it sets Reply.Ours if the object is that of the parts
// and not older than the upload, and Reply.Unmet if the object, or its absence, does not
// meet the preconditions of the caller.
//
//	reply to the request                       action
//	the object                                 done
//	an object that differs                     check
//	no reply, cut, or without an object        wait, check
//	408, 429, 5xx, rate-limit 403              wait, check
//	409 to a completion                        wait, check: an earlier request is at work
//	3xx, other 2xx, 4xx of a stranger          wait, check
//	401                                        refresh the credentials, finish; again: fail
//	other                                      check: an earlier request may have made it
//
//	reply to the check                         action
//	the object of the parts                    done
//	no reply, cut, temporary, of a stranger    wait, check
//	401                                        refresh the credentials, check; again: fail
//	403 and other refusals                     fail: the object may exist
//	no object, or another one:
//	  a temporary object                       fail: unexpected data
//	  after an object that differed            fail: unexpected data; if there is none: like a lost
//	                                           reply, with a wait
//	  if MayExist is set, and Pinned is not:
//	    another generation than Seen           fail: the outcome is unknown
//	  after a lost reply                       finish; if MayExist and Unconditional: inspect
//	  after 412                                fail if the caller's precondition does not hold;
//	                                           another object, not Pinned: finish with its
//	                                           generation, three times; else inspect
//	  after 403, or an exhausted quota         fail
//	  after a request that cannot be made      fail
//	  after any other refusal                  wait, inspect; the second time: fail
//
// MayExist is set after no reply, a 5xx, a stranger's reply, and whatever else does not show that
// the request had no effect. The object of the parts may then have been made, and replaced by
// another client, whose object must not be replaced. A Pinned request cannot replace it.
//
// Inspect ends the conversation. The driver finds out which parts the service has. If it has
// all, the driver joins them again with the same state. Otherwise it sends those that are
// missing, and begins a new conversation. After a failure the service still has the parts.
//
// Sources: https://cloud.google.com/storage/docs/json_api/v1/objects/compose,
// https://cloud.google.com/storage/docs/xml-api/post-object-complete
func (s Join) Decide(r session.Reply) (Join, session.Action) {
	a := s.decide(&r)
	return s, a
}

func (s *Join) decide(r *session.Reply) session.Action {
	got := effectOf(r, true)
	if r.Op == session.OpStat {
		return s.checked(r, got)
	}
	s.MayExist = s.MayExist || mayHaveActed(r)
	switch {
	case got == unknown:
		return s.again(r, session.Check)
	case got == unauthorized:
		return s.refresh(r, session.Finish)
	case got == succeeded && !r.Differs:
		return session.Action{Step: session.Done, Object: r.Object}
	}
	s.doubt = *r
	return session.Action{Step: session.Check, Err: failure(r, nil)}
}

// checked handles the metadata of the object at the destination.
func (s *Join) checked(r *session.Reply, o effect) session.Action {
	found := o == succeeded
	switch {
	case found && r.Ours:
		return session.Action{Step: session.Done, Object: r.Object}
	case o == unknown:
		return s.again(r, session.Check)
	case o == unauthorized:
		return s.refresh(r, session.Check)
	case o == refused:
		return refuse(r)
	}
	generation := int64(0)
	if found {
		generation = r.Object.Generation
	}
	why := s.doubt
	s.doubt = session.Reply{}
	switch {
	case found && (s.Temporary || why.Object != nil):
		r.Err = errors.New("the object is not that of the parts")
		return end(r, session.ErrUnexpectedData)
	case s.replaced(generation):
		return s.unknown(&why, r)
	case why.Op == "":
		return session.Action{Step: s.repeat()}
	case why.Object != nil:
		return s.again(&why, s.repeat())
	case unmet(&why) && r.Unmet:
		return end(&why, session.ErrPrecondition)
	case unmet(&why) && generation != s.Seen && !s.Pinned:
		if s.foreign++; s.foreign > maxForeign {
			why.Err = errors.New("other clients keep writing the object")
			return end(&why, session.ErrOutcomeUnknown)
		}
		s.Seen = generation
		return session.Action{Step: session.Finish, Err: failure(&why, nil)}
	case why.Status == 0 || denied(&why) || s.refused.confirms(&why):
		if unmet(&why) {
			return end(&why, session.ErrProtocol) // the caller's precondition holds, and the service has all parts
		}
		return refuse(&why)
	}
	a := s.again(&why, Inspect)
	a.Wait = true
	return a
}

// repeat returns the step after a lost reply, if the destination has not changed.
func (s *Join) repeat() session.Step {
	if s.Unconditional && s.MayExist {
		return Inspect
	}
	return session.Finish
}

// replaced reports whether the object at the destination, which is not that of the parts, may have
// replaced it. generation is 0 if there is none.
func (s *Join) replaced(generation int64) bool {
	return s.MayExist && !s.Temporary && !s.Pinned && generation != s.Seen
}

// unknown ends the conversation because the object at the destination may be that of another
// client. r is the reply to the check, and why the refusal before it, if there is one.
func (s *Join) unknown(why, r *session.Reply) session.Action {
	if why.Op == "" {
		why = r
	}
	why.Err = errors.New("the reply to an earlier request that makes the object was lost, and the destination has changed since: another client may have written it")
	return end(why, session.ErrOutcomeUnknown)
}
