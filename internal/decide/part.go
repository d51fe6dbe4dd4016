package decide

import (
	"errors"

	"gcsup/internal/multipart"
	"gcsup/session"
)

// Part is the state of a part of a multipart upload between two exchanges.
type Part struct {
	trouble
	reconnected bool // a request failed on a reused connection

	damaged int   // how often the bytes arrived damaged
	doubt   doubt // a refusal, or the answer that the upload does not exist
}

// noUpload is the doubt after the answer that the multipart upload does not exist, because it was completed or aborted.
var noUpload = doubt{404, "NoSuchUpload"}

// maxDamaged bounds how often the bytes of a part are sent again because they arrived
// damaged.
const maxDamaged = 3

// Decide returns the next action after the reply to a part (Send), or to the question
// which parts the service has (Query). It is a pure function. The driver sets Reply.Ours if
// the service has the part with the bytes of the source.
//
//	reply to the part                          action
//	200 with an ETag                           done
//	no reply, and no byte was sent             wait, send
//	no reply, on a reused connection           query at once, the first time
//	no reply, cut, or without an ETag          wait, query
//	another checksum, or none (multipart.StreamPart)     wait, query
//	408, 429, 5xx, rate-limit 403              wait, query
//	3xx, other 2xx, 4xx of a stranger          wait, query
//	401                                        refresh the credentials, send; again: fail
//	400 that names a hash                      wait, send; the fourth time: fail
//	404 NoSuchUpload                           wait, query
//	403, or an exhausted quota                 fail
//	other                                      wait, query; the second time: fail
//
//	reply to the question                      action
//	the part, with the bytes of the source     done
//	another part with its number, or none      send
//	no reply, cut, temporary, of a stranger    wait, query
//	401                                        refresh the credentials, query; again: fail
//	404 NoSuchUpload                           wait, query; after the second one: absent
//	other                                      send: the part replaces itself
//
// After a failure the upload is still open, and keeps the parts that it has.
//
// Sources: https://cloud.google.com/storage/docs/xml-api/put-object-multipart,
// https://cloud.google.com/storage/docs/xml-api/get-object-multipart
func (s Part) Decide(r session.Reply) (Part, session.Action) {
	a := s.decide(&r)
	if a.Step == session.Fail {
		a.Err.Open = true
	}
	return s, a
}

func (s *Part) decide(r *session.Reply) session.Action {
	got := effectOf(r, true)
	if r.Op == multipart.OpList {
		return s.asked(r, got)
	}
	switch got {
	case succeeded:
		return session.Action{Step: session.Done}
	case unknown:
		if r.Unsent {
			return s.again(r, session.Send)
		}
		return s.again(r, session.Query)
	case unauthorized:
		return s.refresh(r, session.Send)
	case absent:
		s.doubt.confirms(r)
		return s.again(r, session.Query)
	}
	switch {
	case r.Status == 0 || denied(r):
		return refuse(r)
	case damaged(r):
		if s.damaged++; s.damaged > maxDamaged {
			return refuse(r)
		}
		return s.again(r, session.Send)
	case s.doubt.confirms(r):
		return refuse(r)
	}
	return s.again(r, session.Query)
}

// again backs off before step. After the first failure on a reused connection there is no wait.
func (s *Part) again(r *session.Reply, step session.Step) session.Action {
	if !s.reconnected && r.Op == multipart.OpPart && r.Reused && r.Status == 0 && effectOf(r, true) == unknown && !errors.Is(r.Err, session.ErrStalled) {
		s.reconnected = true
		return session.Action{Step: step, Err: failure(r, nil)}
	}
	return s.trouble.again(r, step)
}

// asked handles the reply to the question which parts the service has.
func (s *Part) asked(r *session.Reply, o effect) session.Action {
	switch o {
	case succeeded:
		if s.doubt == noUpload {
			s.doubt = doubt{}
		}
		if r.Ours {
			return session.Action{Step: session.Done}
		}
	case unknown:
		return s.again(r, session.Query)
	case unauthorized:
		return s.refresh(r, session.Query)
	case absent:
		if !s.doubt.confirms(r) {
			return s.again(r, session.Query)
		}
		return session.Action{Step: Absent, Err: failure(r, session.ErrSessionLost)}
	case refused:
		if r.Status == 0 {
			return refuse(r) // no request can be made
		}
		return session.Action{Step: session.Send, Err: failure(r, nil)}
	}
	return session.Action{Step: session.Send}
}
