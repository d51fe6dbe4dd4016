package session

import (
	"net/http"
	"strings"
)

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

// scopesHeader is the key under which MarkScopes stores the scopes. Like that of redirectHeader,
// no header of a reply has this key.
const scopesHeader = "gcsup scopes"

// MarkScopes records in a reply that the scopes of the token permit no uploads. The error of a
// 403 then wraps a [ScopeError]. It is for the transport of the HTTP client that adds the
// credentials.
func MarkScopes(resp *http.Response, scopes []string) {
	if resp.Header == nil {
		resp.Header = http.Header{}
	}
	resp.Header[scopesHeader] = scopes
}

// marked returns the error that MarkAnonymous or MarkScopes recorded in the header of a reply. It is
// nil if they recorded none or the reply has another status than theirs.
func marked(resp *http.Response) error {
	if reason := resp.Header[anonymousHeader]; len(reason) > 0 && resp.StatusCode == http.StatusUnauthorized {
		return &AnonymousError{reason[0]}
	}
	if scopes := resp.Header[scopesHeader]; len(scopes) > 0 && resp.StatusCode == http.StatusForbidden {
		return &ScopeError{scopes}
	}
	return nil
}
