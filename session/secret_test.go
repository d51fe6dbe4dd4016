package session_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"gcsup/backoff"
	"gcsup/chunk"
	"gcsup/internal/decide"
	"gcsup/internal/require"
	"gcsup/internal/wiretest"
	"gcsup/session"
	"gcsup/session/internal/secret"
	"gcsup/session/internal/secrettest"
)

// holders returns values through which a URI can be printed by accident.
func holders(uri session.URI) map[string]any {
	type Public struct{ URI session.URI }
	type private struct{ uri session.URI }
	type pointer struct{ uri *session.URI }
	type embedded struct{ session.URI }
	started := session.Reply{Op: session.OpStart, Status: 200, URI: uri, Committed: -1}
	st, action := session.Decide(session.State{Size: -1, MayExist: true}, session.Reply{Op: session.OpQuery, Status: 404, URI: uri})
	_, failed := session.Decide(st, session.Reply{Op: session.OpStat, Status: 404, URI: uri})
	return map[string]any{
		"itself": uri, "a pointer": &uri, "a slice": []session.URI{uri}, "an array": [1]session.URI{uri}, "an interface": []any{uri, &uri},
		"a value of a map": map[string]session.URI{"k": uri}, "a key of a map": map[session.URI]int{uri: 1},
		"a field": Public{uri}, "an unexported field": private{uri}, "a pointer to one": &private{uri}, "an unexported pointer": pointer{&uri},
		"an embedded field": embedded{uri}, "deep": map[string]any{"k": []any{&private{uri}, []Public{{uri}}, map[string]*private{"k": {uri}}}},
		"a Reply": started, "a State": st, "an Action": action, "an Error": failed.Err, "an Error's value": *failed.Err,
	}
}

func TestURIIsRedacted(t *testing.T) { secrettest.Check(t, holders(freshURI(t)), secrettest.In) }

func TestURIString(t *testing.T) {
	for _, c := range []struct {
		uri  session.URI
		want string
	}{{session.URI{}, "[no session URI]"}, {freshURI(t), "[session URI redacted]"}} {
		json, err := json.Marshal(c.uri)
		if got := fmt.Sprint(c.uri); got != c.want || fmt.Sprintf("%x", c.uri) != c.want || string(json) != `"`+c.want+`"` || err != nil {
			t.Errorf("%s, %s, %v, want %s", got, json, err, c.want)
		}
	}
	if !(session.URI{}).IsZero() || freshURI(t).IsZero() {
		t.Error("IsZero returned the wrong result")
	}
}

// chain returns the text of an error and of all errors that it wraps, in every
// format.
func chain(err error) string {
	if err == nil {
		return ""
	}
	text := fmt.Sprintf("%v | %+v | %#v | %s\n", err, err, err, err)
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		text += chain(e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			text += chain(inner)
		}
	}
	return text
}

// TestFailedRequestsKeepTheSecret checks that no error has the URL, which
// net/http puts into the text of every error. It also checks that the kind of
// the error is kept. TestNetworkReal of package backoff has more kinds of failures.
func TestFailedRequestsKeepTheSecret(t *testing.T) {
	plain := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer plain.Close()
	secure := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	secure.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	defer secure.Close()
	// The client's end of a connection has a port without a listener, which no
	// other process can get.
	closed, err := net.Dial("tcp", plain.Listener.Addr().String())
	require.NoError(t, err)
	defer closed.Close()
	refusing := wiretest.New(t, "HTTP/1.1 407 Proxy Authentication Required\nContent-Length: 0\n\n")
	canceled, cancel := context.WithCancel(t.Context())
	cancel()

	transport := func(set func(*http.Transport)) *http.Client {
		tr := &http.Transport{}
		if set != nil {
			set(tr)
		}
		t.Cleanup(tr.CloseIdleConnections)
		return &http.Client{Transport: tr}
	}
	proxy := func(to string) func(*http.Transport) {
		u, err := url.Parse(to)
		require.NoError(t, err)
		return func(tr *http.Transport) { tr.Proxy = http.ProxyURL(u) }
	}
	const host = "https://storage.googleapis.com"
	for _, c := range []struct {
		name     string
		ctx      context.Context
		hc       *http.Client
		endpoint string
		verdict  backoff.Verdict
	}{
		{"connection refused", nil, transport(nil), "http://" + closed.LocalAddr().String(), backoff.Transient},
		{"an untrusted certificate", nil, transport(nil), secure.URL, backoff.Transient},
		{"a certificate of another host", nil, transport(func(tr *http.Transport) {
			tr.TLSClientConfig = secure.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
			tr.TLSClientConfig.ServerName = "other.invalid"
			tr.DialTLSContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
				return (&tls.Dialer{Config: tr.TLSClientConfig}).DialContext(ctx, network, secure.Listener.Addr().String())
			}
		}), "https://other.invalid", backoff.Transient},
		{"a proxy that is not there", nil, transport(proxy("http://" + closed.LocalAddr().String())), host, backoff.Transient},
		{"a proxy that refuses", nil, transport(proxy(refusing.Endpoint())), host, backoff.Transient},
		{"a proxy that has no address", nil, transport(func(tr *http.Transport) {
			proxy("http://proxy.invalid")(tr)
			tr.DialContext = func(_ context.Context, network, address string) (net.Conn, error) { // like the error of a resolver
				return nil, &net.OpError{Op: "dial", Net: network, Err: &net.DNSError{Err: "no such host", Name: address, IsNotFound: true}}
			}
		}), host, backoff.Transient},
		{"canceled", canceled, transport(nil), plain.URL, backoff.Permanent},
		{"a transport that prints", nil, &http.Client{Transport: wiretest.RoundTrip(func(r *http.Request) (*http.Response, error) {
			return nil, fmt.Errorf("%s %q: %w", r.Method, r.URL, connReset)
		})}, host, backoff.Transient},
		{"a transport that prints what it waited for", nil, &http.Client{Transport: wiretest.RoundTrip(func(r *http.Request) (*http.Response, error) {
			return nil, fmt.Errorf("%s: %w", r.URL.RawQuery, errTimeout)
		})}, host, backoff.Transient},
		{"a transport with a client in it", nil, &http.Client{Transport: wiretest.RoundTrip(func(r *http.Request) (*http.Response, error) {
			return nil, &url.Error{Op: "Put", URL: r.URL.String(), Err: &url.Error{Op: "Put", URL: r.URL.String(), Err: io.EOF}}
		})}, host, backoff.Transient},
		{"a transport that has no credentials", nil, &http.Client{Transport: wiretest.RoundTrip(func(r *http.Request) (*http.Response, error) {
			return nil, fmt.Errorf("%w: %s", session.ErrCredentials, "no token")
		})}, host, backoff.Permanent},
		{"a transport that has no credentials and prints", nil, &http.Client{Transport: wiretest.RoundTrip(func(r *http.Request) (*http.Response, error) {
			return nil, fmt.Errorf("%w for %s", session.ErrCredentials, r.URL)
		})}, host, backoff.Permanent},
	} {
		ctx := c.ctx
		if ctx == nil {
			ctx = t.Context()
		}
		client, uri := wiretest.NewClient(t, c.hc, c.endpoint), uriAt(t, c.endpoint)
		rng := chunk.Range{To: 5}
		for name, r := range map[string]session.Reply{
			"put":      client.Put(ctx, uri, rng, 9, strings.NewReader("bytes")),
			"finalize": client.Finalize(ctx, uri, rng, 5, 0, strings.NewReader("bytes")),
			"query":    client.Query(ctx, uri),
			"cancel":   client.Cancel(ctx, uri),
		} {
			if r.Status != 0 || r.Err == nil {
				t.Errorf("%s: %s: %+v, want no reply", c.name, name, r)
				continue
			}
			_, a := session.Decide(session.State{Size: 9}, r)
			if a.Err == nil {
				t.Errorf("%s: %s: %+v", c.name, name, a)
				continue
			}
			for _, text := range []string{chain(r.Err), chain(a.Err), fmt.Sprintf("%+v %#v", r, r), decide.Short(r.Refusal())} {
				if secrettest.In(text) || strings.Contains(strings.ReplaceAll(text, "upload_id=[redacted]", ""), "upload_id") {
					t.Errorf("%s: %s: contains the secret: %s", c.name, name, text)
				}
			}
			if r.Retryable() != (c.verdict == backoff.Transient) {
				t.Errorf("%s: %s: %v: retryable = %v", c.name, name, r.Err, r.Retryable())
			}
			if strings.Contains(c.name, "credentials") != errors.Is(a.Err, session.ErrCredentials) {
				t.Errorf("%s: %s: %v: ErrCredentials = %v", c.name, name, a.Err, errors.Is(a.Err, session.ErrCredentials))
			}
		}
	}
}

// TestBadURLKeepsTheSecret checks that a session URI that cannot be used for a
// request is not in the text of the error.
func TestBadURLKeepsTheSecret(t *testing.T) {
	uri := session.URI(secret.New("https://bad host\x7f/" + secrettest.Path))
	client := wiretest.NewClient(t, nil, "")
	for _, r := range []session.Reply{
		client.Query(t.Context(), uri), client.Cancel(t.Context(), uri),
		client.Finalize(t.Context(), uri, chunk.Range{}, 0, 0, nil), client.Query(t.Context(), session.URI{}),
	} {
		if r.Err == nil || secrettest.In(chain(r.Err)) || r.Retryable() {
			t.Errorf("%+v: %s", r, chain(r.Err))
		}
	}
	if err := client.Adopt(uri, "bucket"); !errors.Is(err, session.ErrURIMismatch) || secrettest.In(chain(err)) {
		t.Errorf("Adopt: %v", err)
	}
}
