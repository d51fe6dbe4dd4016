package session

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"gcsup/backoff"
)

// denied reports whether a refusal concerns the rights or the quota of the caller, which a
// second answer would only repeat.
func (r *Reply) denied() bool { return r.Status == 403 || r.exhausted() || r.forbidden() }

// exhausted reports whether a quota is exhausted that is not refilled today.
func (r *Reply) exhausted() bool {
	return r.Reason == "dailyLimitExceeded" || r.Reason == "quotaExceeded"
}

// forbidden reports whether a policy of the organization forbids the request. The status is 412.
func (r *Reply) forbidden() bool { return r.Reason == "orgPolicyConstraintFailed" }

// verdict classifies a reply. begun reports whether the service answered before. If
// it did, a request without a reply is always retried: the network may have changed,
// but the destination did not.
func verdict(r *Reply, begun bool) backoff.Verdict {
	if r.strange(begun) {
		return backoff.Transient
	}
	if r.Status != 0 {
		return backoff.Status(r.Status, r.Reason)
	}
	switch {
	case errors.Is(r.Err, ErrStalled):
		return backoff.Transient
	case errors.Is(r.Err, ErrCredentials), errors.Is(r.Err, ErrURIMismatch), errors.Is(r.Err, ErrInvalid), errors.Is(r.Err, context.Canceled):
		return backoff.Permanent
	case begun:
		return backoff.Transient
	}
	return backoff.Network(r.Err)
}

// strange reports whether a reply is not the service's, although the service
// answered before. It is the login page of a captive portal, for example, or a
// proxy that requires a password.
func (r *Reply) strange(begun bool) bool {
	switch {
	case !begun:
		return false
	case r.Redirect != "" || r.FromProxy():
		return true
	case r.Status == 200 || r.Status == 201 || r.Status == 308 || r.notModified():
		return false
	case r.deletes && r.Status == 204:
		return false
	}
	return r.Status >= 200 && r.Status < 400
}

// FromProxy reports whether a refusal comes from a proxy, a load balancer or another server,
// and not from the service. It is false for a 401: whichever server sent it, the
// credentials are refreshed.
func (r *Reply) FromProxy() bool {
	return r.Status == 407 || ineffective(r.Status) && r.Status != 401 && r.Status != 429 && !r.FromService
}

// ineffective reports whether a status means that the request had no effect.
func ineffective(status int) bool { return status >= 400 && status < 500 && status != 408 }

// mayHaveActed reports whether a request that makes an object may have had an effect, and the
// reply does not describe the right one.
func (r *Reply) mayHaveActed() bool {
	switch {
	case r.Unsent || r.notModified():
		return false
	case r.Status == 0:
		return !errors.Is(r.Err, ErrCredentials) && !errors.Is(r.Err, ErrURIMismatch) && !errors.Is(r.Err, ErrInvalid) // no request was made
	}
	return !ineffective(r.Status) || r.FromProxy()
}

// permanent returns the sentinel error for a reply that is not retried.
func permanent(r *Reply, status int) error {
	begins := r.Op.begins()
	switch {
	case errors.Is(r.Err, ErrCredentials):
		return ErrCredentials
	case errors.Is(r.Err, ErrURIMismatch):
		return ErrProtocol
	case errors.Is(r.Err, ErrInvalid):
		return ErrInvalid
	case status == 407 || status == 0 && backoff.ProxyStatus(r.Err) == 407:
		return ErrCredentials // the proxy's
	case status == 0:
		return ErrNotFound // no such host, or a certificate for another host
	case r.exhausted():
		return ErrQuota
	case status == 401:
		return ErrCredentials
	case status == 403 || r.forbidden():
		return ErrPermission
	case r.damaged(status):
		return ErrChecksum
	case status == 404 || status == 410 || !r.FromService && status != 400:
		return ErrNotFound // no such bucket, or another kind of server
	case begins && ineffective(status):
		return ErrInvalid
	case ineffective(status):
		return ErrProtocol
	}
	// A redirect, or a reply that the API does not send. It is from a proxy and
	// does not concern the session.
	return ErrNotFound
}

// damaged reports whether the service refused the object because its bytes do
// not have the checksum that was sent with them. The service answers 400,
// Google's test bench 412
// (https://github.com/googleapis/storage-testbench). A later query gets 410 around
// that status, so that a process which did not see the first answer does not resume the
// session.
func (r *Reply) damaged(status int) bool {
	return (status == 400 || status == 412) && (r.Op == OpInsert || r.Op == OpFinalize || r.Op == OpQuery && r.Inner == status) &&
		(mentionsHash(r.Message) || r.Reason == "BadDigest" || r.Reason == "CrcMismatch")
}

// unmet reports whether the service refused a precondition.
func (r *Reply) unmet() bool {
	return r.Status == 412 && !r.forbidden() || r.Status == 410 && r.Inner == 412 || r.notModified()
}

// notModified reports whether the service refused one of the preconditions
// IfGenerationNotMatch and IfMetagenerationNotMatch, for which it has another status.
// https://cloud.google.com/storage/docs/json_api/v1/status-codes#304_Not_Modified
func (r *Reply) notModified() bool {
	return r.Status == 304 && r.FromService && (r.Op == OpInsert || r.Op == OpPut || r.Op == OpQuery || r.Op == OpFinalize)
}

// mentionsHash distinguishes a checksum that does not match from other bad requests.
// The service gives both the same status and reason, and only its text differs.
func mentionsHash(message string) bool {
	m := strings.ToLower(message)
	return strings.Contains(m, "crc32c") || strings.Contains(m, "md5") || strings.Contains(m, "checksum")
}

// otherEncryption reports whether the service refused a request because the
// object at the destination is not encrypted with the key of the request.
func (r *Reply) otherEncryption() bool {
	return r.Status == http.StatusBadRequest &&
		(r.Reason == "resourceNotEncryptedWithCustomerEncryptionKey" || r.Reason == "customerEncryptionKeyIsIncorrect")
}

// staleConnection reports whether object data was sent over a connection that was
// probably closed while it was idle, which is no failure of the service. The next
// request need not wait.
func (r *Reply) staleConnection() bool {
	return r.Reused && r.Status == 0 && (r.Op == OpPut || r.Op == OpFinalize || r.Op == OpInsert) && verdict(r, true) == backoff.Transient && !errors.Is(r.Err, ErrStalled)
}

// Damaged reports whether the service refused the object because its bytes do not
// have a checksum that was sent for them.
func (r Reply) Damaged() bool { return r.damaged(r.Status) }

// Retryable reports whether the same request may succeed after a wait.
func (r Reply) Retryable() bool { return verdict(&r, r.Reached || !r.Op.begins()) == backoff.Transient }
