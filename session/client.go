package session

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"
)

// DefaultEndpoint is the endpoint of Cloud Storage.
const DefaultEndpoint = "https://storage.googleapis.com"

// Client makes the HTTP exchanges of the protocol with one endpoint. The zero
// value is the client of NewClient(nil, ""). A Client is safe for concurrent use,
// but a session must not have two requests in flight.
type Client struct {
	http     *http.Client  // made by unredirected; nil: http.DefaultClient
	endpoint *url.URL      // nil: defaultBase
	key      EncryptionKey // of the session; see WithEncryptionKey
	header   http.Header   // the caller's, for every request

	intention string // see WithIntention; "" for no idempotency tokens
}

// NewClient returns a client that sends its requests with hc to endpoint, a
// scheme and a host. An empty endpoint means [DefaultEndpoint]. A path in the
// endpoint is ignored, as in the official library.
//
// hc must add the credentials. A nil hc means http.DefaultClient, without
// credentials. The client never follows a redirect, even if hc does: status 308
// is a reply of the protocol, and a redirect could send the session URI to
// another host. NewClient returns an error if hc has a Timeout, which would end
// every long request. Bound each request with its context instead, or use package
// upload, which detects stalls.
//
// If the transport of hc records URLs, for example for tracing, wrap it with
// [Traced]. Otherwise it records the session URI, which is a secret.
func NewClient(hc *http.Client, endpoint string) (*Client, error) {
	own := unredirected(cmp.Or(hc, http.DefaultClient))
	endpoint = cmp.Or(endpoint, DefaultEndpoint)
	u, err := url.Parse(endpoint)
	if err == nil && u.User != nil {
		return nil, fmt.Errorf("endpoint %q: must not have a user name or password", u.Redacted())
	}
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("endpoint %q: want http://HOST[:PORT] or https://HOST[:PORT]", endpoint)
	}
	if own.Timeout != 0 {
		return nil, fmt.Errorf("the HTTP client has a Timeout of %v, which would end every long request: set it to 0, and bound each request with its context", own.Timeout)
	}
	return &Client{http: own, endpoint: &url.URL{Scheme: u.Scheme, Host: plainHost(u)}}, nil
}

// defaultBase is the endpoint of the zero Client.
var defaultBase = &url.URL{Scheme: "https", Host: strings.TrimPrefix(DefaultEndpoint, "https://")}

// base returns the URL of the endpoint. The caller must not change it.
func (c *Client) base() *url.URL { return cmp.Or(c.endpoint, defaultBase) }

// doer returns the HTTP client for a request.
func (c *Client) doer() *http.Client {
	if c.http == nil {
		return unredirected(http.DefaultClient)
	}
	return c.http
}

// unredirected returns a copy of hc that returns a redirect as a reply.
func unredirected(hc *http.Client) *http.Client {
	own := *hc
	own.Transport = notRedirected{own.Transport}
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &own
}

// redirectHeader is the key under which notRedirected stores the Location of a
// redirect. It is not in canonical form, so that no header of a reply has this
// key.
const redirectHeader = "gcsup redirect"

// notRedirected hides the Location of a redirect from http.Client. The client
// parses a Location even if it does not follow it. For a malformed one it
// returns an error without the status and the body of the reply.
type notRedirected struct{ base http.RoundTripper }

func (n notRedirected) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := cmp.Or(n.base, http.DefaultTransport).RoundTrip(req)
	if err == nil && resp.StatusCode >= 300 && resp.StatusCode < 400 {
		if location := resp.Header.Get("Location"); location != "" {
			resp.Header.Del("Location")
			resp.Header[redirectHeader] = []string{location}
		}
	}
	return resp, err
}

// CloseIdleConnections closes the idle connections of base.
func (n notRedirected) CloseIdleConnections() {
	(&http.Client{Transport: n.base}).CloseIdleConnections()
}

// plainHost returns the host of u in canonical form: lower case, and without
// the default port of the scheme.
func plainHost(u *url.URL) string {
	port := ":443"
	if u.Scheme == "http" {
		port = ":80"
	}
	return strings.TrimSuffix(strings.TrimSuffix(strings.ToLower(u.Host), port), ":")
}

// isEndpoint reports whether u has the scheme and the host of the endpoint.
func (c *Client) isEndpoint(u *url.URL) bool {
	return u.Scheme == c.base().Scheme && plainHost(u) == c.base().Host
}

// Endpoint returns the scheme and host of the endpoint.
func (c *Client) Endpoint() string { return c.base().String() }

// url returns an absolute URL with the elements of a path, and without the parameters whose
// value is "".
func (c *Client) url(query url.Values, path ...string) string {
	maps.DeleteFunc(query, func(_ string, values []string) bool { return len(values) == 1 && values[0] == "" })
	var target strings.Builder
	target.WriteString(c.Endpoint())
	for _, element := range path {
		target.WriteByte('/')
		target.WriteString(url.PathEscape(element))
	}
	if len(query) > 0 {
		target.WriteByte('?')
		target.WriteString(query.Encode())
	}
	return target.String()
}

// WithEncryptionKey returns a client that sends k with the requests of a session. If the
// session was started with a Spec.EncryptionKey, every request needs that key.
// Start, Insert and Stat use the key of their Spec. The zero k removes the key.
func (c *Client) WithEncryptionKey(k EncryptionKey) *Client {
	if k.IsZero() && c.key.IsZero() {
		return c
	}
	own := *c
	own.key = k
	return &own
}
