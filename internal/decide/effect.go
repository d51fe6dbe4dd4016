package decide

import (
	"errors"
	"net/http"

	"gcsup/backoff"
	"gcsup/internal/bucket"
	"gcsup/internal/multipart"
	"gcsup/session"
)

// effect is what a reply shows about the effect of its request.
type effect int

const (
	succeeded    effect = iota // the request had its effect, and the reply describes it
	unknown                    // lost, cut, temporary, or a stranger's reply: the effect is not known
	absent                     // the service does not have what the request is about
	unauthorized               // the credentials were rejected
	refused                    // the service refuses the request, or was never reached and will not be
)

// effectOf classifies a reply. begun reports whether the service answered before.
func effectOf(r *session.Reply, begun bool) effect {
	switch {
	case success(r):
		return succeeded
	case r.Status == 200 || r.Status == 201 || begun && r.Status >= 200 && r.Status < 400:
		return unknown // without what the reply must have, or a stranger's
	case isAbsent(r):
		return absent
	case r.Op == multipart.OpComplete && r.Status == 409:
		return unknown // the service still works on an earlier request
	case r.Op == multipart.OpStart && r.Status == 501:
		return refused // no XML API
	}
	in := *r
	in.Reached = begun
	switch {
	case in.Retryable():
		return unknown
	case backoff.Status(r.Status, r.Reason) == backoff.Credentials:
		return unauthorized
	}
	return refused
}

// begun reports whether the service answered before the reply: the request is about what an earlier answer named.
func begun(r *session.Reply) bool { return r.Reached || named(r.Op) || r.Op == session.OpCancel }

// named reports whether a request is about something that an earlier answer of the service named.
func named(op session.Op) bool {
	switch op {
	case bucket.OpCompose, multipart.OpPart, multipart.OpList, multipart.OpComplete, multipart.OpAbort:
		return true
	}
	return false
}

// success reports whether a request had its effect, and the reply has all that it must have.
func success(r *session.Reply) bool {
	switch r.Op {
	case session.OpStart, multipart.OpStart:
		return !r.URI.IsZero()
	case bucket.OpDelete, bucket.OpDeleteFolder, multipart.OpAbort:
		return r.Status == 204
	case session.OpCancel:
		return r.Status == 499 && r.FromService || r.Object != nil
	case bucket.OpList, bucket.OpRead, bucket.OpConfig, bucket.OpNotifications, bucket.OpPermissions, bucket.OpManagedFolder, multipart.OpPart, multipart.OpList:
		return r.Status == 200 && r.Err == nil
	}
	return r.Object != nil
}

// isAbsent reports whether the service answered that it does not have what the request is about.
func isAbsent(r *session.Reply) bool {
	switch r.Op {
	case multipart.OpPart, multipart.OpList, multipart.OpComplete, multipart.OpAbort:
		return r.Status == http.StatusNotFound && r.FromService && r.Reason == noUpload.reason
	case session.OpCancel:
		return r.FromService && (r.Status == 404 || r.Status == 410)
	case bucket.OpDelete, session.OpStat, bucket.OpRead, bucket.OpManagedFolder, bucket.OpDeleteFolder:
		return r.FromService && r.Status == 404
	}
	return false
}

// Answers reports whether the reply is an answer to the question of the request: success, or the absence of what it
// is about.
func Answers(r *session.Reply) bool { return r.Open() || success(r) || isAbsent(r) }

// Answered reports whether the reply comes from the service. It is false for some replies of the service that a proxy
// may send, too.
func Answered(r *session.Reply) bool {
	return r.Open() || r.FromService || r.Object != nil || !r.URI.IsZero() || r.Op == bucket.OpList && success(r)
}

// refusal returns the error of a permanent failure.
func refusal(r *session.Reply) *session.Error {
	e := r.Refusal()
	switch {
	case r.Op == multipart.OpStart && (r.Status == 410 || r.Status == 501):
		e.Kind = session.ErrInvalid // no XML API
	case r.Op == multipart.OpPart && damaged(r) && !denied(r):
		e.Kind = session.ErrChecksum
	case e.Kind == session.ErrInvalid && r.Status != 0 && named(r.Op) && !errors.Is(r.Err, session.ErrInvalid):
		e.Kind = session.ErrProtocol
	}
	return e
}

// failure returns the error of a reply with another sentinel error, or with none.
func failure(r *session.Reply, kind error) *session.Error {
	e := r.Refusal()
	e.Kind = kind
	return e
}

// denied reports whether a refusal concerns the rights or the quota of the caller, which a second answer would only
// repeat.
func denied(r *session.Reply) bool {
	kind := r.Refusal().Kind
	return r.Status != 0 && (kind == session.ErrPermission || kind == session.ErrQuota)
}

// damaged reports whether the service refused a part because its bytes do not have the checksum that was sent.
func damaged(r *session.Reply) bool {
	as := *r
	as.Op = session.OpInsert // like a part, it is data with a checksum
	return as.Damaged()
}

// unmet reports whether the service refused a precondition.
func unmet(r *session.Reply) bool {
	return r.Status == 412 && !denied(r) || r.Status == 410 && r.Inner == 412
}

// mayHaveActed reports whether a request that joins parts may have had an effect, and the reply does not describe the
// right one.
func mayHaveActed(r *session.Reply) bool {
	switch {
	case r.Unsent:
		return false
	case r.Status == 0:
		return !errors.Is(r.Err, session.ErrCredentials) && !errors.Is(r.Err, session.ErrURIMismatch) && !errors.Is(r.Err, session.ErrInvalid) // no request was made
	case r.Op == multipart.OpComplete && r.Status == 409:
		return true // the service works on an earlier request
	}
	return r.Status < 400 || r.Status >= 500 || r.Status == 408 || r.FromProxy()
}

// Lost reports whether no reply arrived.
func Lost(r *session.Reply) bool { return r.Status == 0 }
