package backoff

import (
	"net/http"
	"time"

	"gcsup/internal/breaker"
)

// pacedTransport makes requests at a rate, and records their outcomes.
type pacedTransport struct {
	base http.RoundTripper
	rate *Rate // nil if requests are not paced
}

// RoundTrip waits until the request may start, and makes it.
func (t pacedTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if t.rate == nil {
		return t.base.RoundTrip(req)
	}
	if err := t.rate.wait(req.Context()); err != nil {
		if req.Body != nil {
			req.Body.Close()
		}
		return nil, err
	}
	resp, err := t.base.RoundTrip(req)
	switch {
	case err != nil, resp.StatusCode >= 500, resp.StatusCode == http.StatusRequestTimeout:
	case rateLimited(resp):
		t.rate.Refused(time.Now())
	default:
		t.rate.Accepted(time.Now())
	}
	return resp, err
}

// rateLimited reports whether a reply refuses a request because there are too many. A limit on
// the changes of one object does not concern other requests.
func rateLimited(resp *http.Response) bool {
	if resp.StatusCode != http.StatusTooManyRequests && resp.StatusCode != http.StatusForbidden {
		return false
	}
	limit, ok := transient(resp).(*StatusError)
	return ok && !breaker.ObjectRateLimit(limit.Code, limit.Reason, limit.Message)
}
