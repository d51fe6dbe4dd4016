// Package marks lets the transport that adds credentials tell package session, in a reply, what the
// request lacked. The marks are header keys that are not in canonical form, so that no server can send them.
package marks

import "net/http"

const (
	anonymous = "gcsup anonymous"
	scopes    = "gcsup scopes"
)

// Anonymous records in a reply that its request had no credentials, and why.
func Anonymous(resp *http.Response, why string) { set(resp, anonymous, []string{why}) }

// Scopes records in a reply that the access scopes of the token permit no uploads.
func Scopes(resp *http.Response, of []string) { set(resp, scopes, of) }

func set(resp *http.Response, key string, values []string) {
	if resp.Header == nil {
		resp.Header = http.Header{}
	}
	resp.Header[key] = values
}

// WhyAnonymous returns the reason that Anonymous recorded, or "".
func WhyAnonymous(resp *http.Response) string {
	if values := resp.Header[anonymous]; len(values) > 0 {
		return values[0]
	}
	return ""
}

// ScopesOf returns the scopes that Scopes recorded, or nil.
func ScopesOf(resp *http.Response) []string { return resp.Header[scopes] }
