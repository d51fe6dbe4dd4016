package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"os"
	"strings"
)

// Endpoint of the service when none is given.
const DefaultEndpoint = "https://storage.googleapis.com"

// Client makes the exchanges of the protocol at one endpoint. It is safe for
// concurrent use; a single session must not have two requests in flight.
type Client struct {
	http     *http.Client
	endpoint *url.URL
	close    bool // every connection is closed after the reply
}

// NewClient returns a client that sends its requests with hc to endpoint: a
// scheme and a host, "" for [DefaultEndpoint]. hc adds the credentials (nil:
// http.DefaultClient, no credentials). No redirect is followed, whatever its
// policy: a reply of 308 is an answer here, and a redirect could carry the
// session to another host. A Timeout in hc is refused, because it would end
// every long request; package upload has Options.StallTimeout instead. A path in
// the endpoint is dropped, as the official library drops it for uploads.
//
// A transport in hc that records URLs, for tracing say, must be made with
// [Traced], or it records the session's secret.
func NewClient(hc *http.Client, endpoint string) (*Client, error) {
	if hc == nil {
		hc = http.DefaultClient
	}
	if endpoint == "" {
		endpoint = DefaultEndpoint
	}
	u, err := url.Parse(endpoint)
	if err == nil && u.User != nil {
		return nil, fmt.Errorf("endpoint %q: want no user name and password in it", u.Redacted())
	}
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("endpoint %q: want http://HOST[:PORT] or https://HOST[:PORT]", endpoint)
	}
	if hc.Timeout != 0 {
		return nil, fmt.Errorf("the HTTP client has a Timeout of %v, which would end every longer request: set it to 0, and use StallTimeout in the options of package upload", hc.Timeout)
	}
	own := *hc
	own.Transport = notRedirected{own.Transport}
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Client{http: &own, endpoint: &url.URL{Scheme: u.Scheme, Host: plainHost(u)}}, nil
}

// redirectHeader is where notRedirected puts the Location of a redirect. It is
// not in the form that net/http gives to the header of a reply, so that none can
// have it.
const redirectHeader = "gcsup redirect"

// notRedirected hides the Location of a redirect from http.Client. That parses it
// even if it will not follow it, and turns a malformed one into an error that has
// neither the status nor the body of the reply.
type notRedirected struct{ base http.RoundTripper }

func (n notRedirected) RoundTrip(req *http.Request) (*http.Response, error) {
	base := n.base
	if base == nil {
		base = http.DefaultTransport
	}
	resp, err := base.RoundTrip(req)
	if err == nil && resp.StatusCode >= 300 && resp.StatusCode < 400 {
		if location := resp.Header.Get("Location"); location != "" {
			resp.Header.Del("Location")
			resp.Header[redirectHeader] = []string{location}
		}
	}
	return resp, err
}

// plainHost is the host in the one way to write it: lower case, and no port
// where it is the scheme's.
func plainHost(u *url.URL) string {
	host := strings.ToLower(u.Host)
	if u.Port() == port(&url.URL{Scheme: u.Scheme}) {
		host = strings.TrimSuffix(host, ":"+u.Port())
	}
	return host
}

// WithoutKeepAlive returns a client that closes each connection after the reply.
// The request after that has a fresh connection, on a network that closes idle
// ones without a word.
func (c *Client) WithoutKeepAlive() *Client {
	own := *c
	own.close = true
	return &own
}

// Endpoint is the scheme and host that requests go to.
func (c *Client) Endpoint() string { return c.endpoint.String() }

// url builds an absolute URL from path elements, which are escaped.
func (c *Client) url(query url.Values, elem ...string) string {
	var b strings.Builder
	b.WriteString(c.endpoint.String())
	for _, e := range elem {
		b.WriteString("/")
		b.WriteString(e)
	}
	if len(query) > 0 {
		b.WriteString("?")
		b.WriteString(query.Encode())
	}
	return b.String()
}

// exchange sends one request and reads its whole (bounded) answer.
func (c *Client) exchange(ctx context.Context, op Op, uri URI, req *http.Request) Reply {
	reused := false
	req = req.WithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) { reused = info.Reused },
	}))
	req.Close = c.close
	resp, err := c.http.Do(req)
	if err != nil {
		return Reply{Op: op, Committed: -1, Err: transportError(ctx, uri, err), Reused: reused}
	}
	defer func() {
		// Reading to the end lets the connection be used again.
		_, _ = io.CopyN(io.Discard, resp.Body, bodyLimit)
		_ = resp.Body.Close()
	}()
	return parseReply(op, uri, resp)
}

// transportError takes the URL, which holds the session's secret, out of the
// error of net/http, and says why the context ended rather than that it did.
func transportError(ctx context.Context, uri URI, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if ue, ok := errors.AsType[*url.Error](err); ok {
		err = ue.Err
	}
	if text := err.Error(); uri.scrub(text) != text {
		// Some transport of the caller's put the URI into its message.
		timeout, ok := errors.AsType[interface {
			error
			Timeout() bool
		}](err)
		return &scrubbed{
			text:    uri.scrub(text),
			is:      func(target error) bool { return errors.Is(err, target) },
			timeout: ok && timeout.Timeout() || errors.Is(err, os.ErrDeadlineExceeded),
		}
	}
	return err
}

// scrubbed stands for an error whose text, at some depth, has the session's
// secret. It can be asked what it is, and does not hand the other out.
type scrubbed struct {
	text    string
	is      func(target error) bool // a function, because fmt can print any other field
	timeout bool
}

func (e *scrubbed) Error() string        { return e.text }
func (e *scrubbed) Is(target error) bool { return e.is(target) }
func (e *scrubbed) Timeout() bool        { return e.timeout }
