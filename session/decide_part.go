package session

// PartState is the state of a part of a multipart upload between two exchanges.
type PartState struct {
	trouble
	damaged int   // how often the bytes arrived damaged
	doubt   doubt // a refusal, or the answer that the upload does not exist
}

// noUpload is the doubt after the answer of [Reply.noUpload].
var noUpload = doubt{404, "NoSuchUpload"}

// maxDamaged bounds how often the bytes of a part are sent again because they arrived
// damaged.
const maxDamaged = 3

// DecidePart returns the next action after the reply to a part (Send), or to the question
// which parts the service has (Query). It is a pure function. The driver sets Reply.Ours if
// the service has the part with the bytes of the source.
//
//	reply to the part                          action
//	200 with an ETag                           done
//	no reply, and no byte was sent             wait, send
//	no reply, on a reused connection           query at once, the first time
//	no reply, cut, or without an ETag          wait, query
//	another checksum, or none (StreamPart)     wait, query
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
func DecidePart(s PartState, r Reply) (PartState, Action) {
	a := s.decide(&r)
	a.Fresh = s.reconnected && !a.Step.Ends()
	if a.Step == Fail {
		a.Err.Open = true
	}
	return s, a
}

func (s *PartState) decide(r *Reply) Action {
	outcome := r.outcome(true)
	if r.Op == OpParts {
		return s.asked(r, outcome)
	}
	switch outcome {
	case succeeded:
		return Action{Step: Done}
	case unknown:
		if r.Unsent {
			return s.again(r, Send)
		}
		return s.again(r, Query)
	case unauthorized:
		return s.refresh(r, Send)
	case absent:
		s.doubt.confirms(r)
		return s.again(r, Query)
	}
	switch {
	case r.Status == 0 || r.denied():
		return r.end(permanent(r, r.Status))
	case r.damaged(r.Status):
		if s.damaged++; s.damaged > maxDamaged {
			return r.end(permanent(r, r.Status))
		}
		return s.again(r, Send)
	case s.doubt.confirms(r):
		return r.end(permanent(r, r.Status))
	}
	return s.again(r, Query)
}

// asked handles the reply to the question which parts the service has.
func (s *PartState) asked(r *Reply, o outcome) Action {
	switch o {
	case succeeded:
		if s.doubt == noUpload {
			s.doubt = doubt{}
		}
		if r.Ours {
			return Action{Step: Done}
		}
	case unknown:
		return s.again(r, Query)
	case unauthorized:
		return s.refresh(r, Query)
	case absent:
		if !s.doubt.confirms(r) {
			return s.again(r, Query)
		}
		return Action{Step: Absent, Err: r.fail(ErrSessionLost)}
	case refused:
		if r.Status == 0 {
			return r.end(permanent(r, r.Status)) // no request can be made
		}
		return Action{Step: Send, Err: r.fail(nil)}
	}
	return Action{Step: Send}
}
