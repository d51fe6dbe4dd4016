package decide

import "gcsup/session"

// Request is the state of a conversation of one request that may be repeated without
// harm. It reads something, starts a multipart upload, or removes something.
type Request struct {
	// Known reports that the service has, or had, what the request is about. Its absence,
	// an answer that differs from what is known, and a refusal must be confirmed by a second
	// answer.
	Known bool

	// Optional reports that the driver can do without the answer, and that the service stores
	// nothing that it would lose. A refusal of a stranger then counts, if a second one confirms it:
	// a proxy may serve only some of the service's requests.
	Optional bool

	trouble
	doubt doubt // the answer to be confirmed
}

// Decide returns the next action after the reply to a request. It is a pure
// function.
//
//	reply                                     action
//	success, with all that it must have       done
//	no reply, cut, or without what it needs   wait, repeat. Before the service was reached:
//	                                          fail if the error is permanent
//	408, 429, 5xx, rate-limit 403             wait, repeat
//	3xx, other 2xx, 4xx of a stranger         wait, repeat, once the service has answered.
//	                                          Optional, a 4xx but 407, for the second time: fail
//	401                                       refresh the credentials, repeat; again: fail
//	403, or an exhausted quota                fail
//	501 to the start of a multipart upload    fail: the server has no XML API
//	404 (see below)                           absent
//	other                                     fail
//
// If Known is set, the last two, and a success that differs from what is known
// (Reply.Differs), mean: wait, repeat. They count if the second answer is the same.
//
// Success is 204 to a deletion and to an abort, and 499, or the object, to the cancellation
// of a session. A multipart upload is absent only after NoSuchUpload: a 404 may also mean
// that the bucket is missing.
// https://cloud.google.com/storage/docs/json_api/v1/objects/delete,
// https://cloud.google.com/storage/docs/xml-api/delete-multipart,
// https://cloud.google.com/storage/docs/performing-resumable-uploads#cancel-upload
func (s Request) Decide(r session.Reply) (Request, session.Action) {
	a := s.decide(&r)
	return s, a
}

func (s *Request) decide(r *session.Reply) session.Action {
	switch effectOf(r, begun(r)) {
	case succeeded:
		if r.Differs && s.Known && !s.doubt.confirms(r) {
			return s.again(r, Repeat)
		}
		return session.Action{Step: session.Done, Object: r.Object}
	case unknown:
		if s.Optional && r.FromProxy() && r.Status != 407 && s.doubt.confirms(r) {
			return refuse(r)
		}
		return s.again(r, Repeat)
	case unauthorized:
		return s.refresh(r, Repeat)
	case absent:
		if s.Known && !s.doubt.confirms(r) {
			return s.again(r, Repeat)
		}
		return session.Action{Step: Absent, Err: failure(r, session.ErrNotFound)}
	}
	if s.Known && r.Status != 0 && !denied(r) && !s.doubt.confirms(r) {
		return s.again(r, Repeat)
	}
	return refuse(r)
}
