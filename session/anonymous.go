package session

import "net/http"

// AnonymousError is the cause of an [Error] whose request had no credentials, and which
// the service refused with status 401.
type AnonymousError struct {
	Reason string // why no credentials were sent, such as "STORAGE_EMULATOR_HOST is set"
}

// Error returns the reason in a sentence.
func (e *AnonymousError) Error() string {
	return "no credentials were sent, because " + e.Reason
}

// anonymousHeader is the key under which MarkAnonymous stores a reason. Like that of
// redirectHeader, no header of a reply has this key.
const anonymousHeader = "gcsup anonymous"

// MarkAnonymous records in a reply that its request had no credentials, and why. The
// error of a 401 then wraps an [AnonymousError]. It is for the transport of the HTTP
// client that adds the credentials to other requests.
func MarkAnonymous(resp *http.Response, reason string) {
	if resp.Header == nil {
		resp.Header = http.Header{}
	}
	resp.Header[anonymousHeader] = []string{reason}
}
