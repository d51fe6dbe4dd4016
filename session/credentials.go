package session

import (
	"net/http"
	"strings"

	"gcsup/internal/marks"
)

// AnonymousError is the cause of an [Error] whose request had no credentials, and which
// the service refused with status 401.
type AnonymousError struct {
	Reason string // why no credentials were sent, such as "STORAGE_EMULATOR_HOST is set"
}

// Error returns the reason in a sentence.
func (e *AnonymousError) Error() string {
	return "no credentials were sent, because " + e.Reason
}

// ScopeError is the cause of an [Error] whose request the service refused with status 403,
// because the access token of the machine has no scope that permits uploads. Permissions of the
// service account do not help.
// https://cloud.google.com/compute/docs/access/service-accounts#accesscopesiam
type ScopeError struct {
	Scopes []string // of the token; URLs
}

// Error returns the scopes in a sentence.
func (e *ScopeError) Error() string {
	return "the access scopes of this machine permit no uploads: " + strings.Join(e.Scopes, ", ")
}

// marked returns the error that the transport recorded in a reply with package marks. It is
// nil if there is none, or the reply has another status than that of the error.
func marked(resp *http.Response) error {
	if why := marks.WhyAnonymous(resp); why != "" && resp.StatusCode == http.StatusUnauthorized {
		return &AnonymousError{why}
	}
	if scopes := marks.ScopesOf(resp); len(scopes) > 0 && resp.StatusCode == http.StatusForbidden {
		return &ScopeError{scopes}
	}
	return nil
}
