package gcs_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gcsup/backoff"
	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/require"
	"gcsup/session"
	"gcsup/upload"
	"gcsup/upload/gcs"
)

// hasty is a policy with short waits, for tests over real connections.
var hasty = backoff.Policy{Initial: time.Millisecond, Maximum: time.Millisecond}

// TestRedirectsGetNoCredentials checks that no redirect is followed. A redirect to
// plain HTTP on the same host would get the token and the header in clear text.
func TestRedirectsGetNoCredentials(t *testing.T) {
	srv, _ := emulator(t, nil)
	service := &tokens{srv: srv}
	// Both schemes reach the same server, as with a captive portal or a proxy.
	both := roundTrip(func(r *http.Request) (*http.Response, error) {
		if r.URL.Scheme != "https" {
			t.Errorf("a redirect was followed with Authorization %q, X-Secret %q", r.Header.Get("Authorization"), r.Header.Get("X-Secret"))
		}
		to := http.Header{"Location": {"http://" + r.URL.Host + r.URL.RequestURI()}}
		return &http.Response{StatusCode: http.StatusTemporaryRedirect, Header: to, Body: http.NoBody, Request: r}, nil
	})
	c := newClient(t, &gcs.Options{
		Endpoint: "https://storage.example", CredentialsFile: credentialsFile(t, service), Transport: both,
		Header: http.Header{"X-Secret": {"hunter2"}},
	})
	spec := upload.Spec{Bucket: "bkt", Object: "o"}
	own, err := session.NewClient(c.HTTP(), c.Endpoint())
	require.NoError(t, err)
	if r := own.Stat(t.Context(), spec); r.Status != http.StatusTemporaryRedirect || r.Redirect != "http://storage.example" {
		t.Errorf("Stat: %+v, want the redirect", r)
	}
	// The same for a request that the program makes itself.
	if _, err := c.HTTP().Get("http://storage.example/"); !errors.Is(err, session.ErrURIMismatch) {
		t.Errorf("Get over plain HTTP: %v, want ErrURIMismatch", err)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestShortHeaderValue checks that a header value that occurs in every reply does
// not change the meaning of the reply, and is not shown.
func TestShortHeaderValue(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("sends many MiB, or many requests")
	}
	for _, value := range []string{"0", "4", `"`, "error", "rateLimitExceeded", "hunter2"} {
		srv, endpoint := emulator(t, &fakegcs.Options{Faults: []faults.Fault{
			{Match: faults.Match{Op: faults.OpStart}, Times: 2, Do: faults.Action{Effect: faults.EffectStatus, Status: 403, Reason: "rateLimitExceeded", Message: "slow down, 40 times"}},
			{Match: faults.Match{Op: faults.OpPut}, Times: 1, Do: faults.Action{Effect: faults.EffectStatus, Status: 403, Reason: "forbidden", Message: "you sent hunter2, hunter20 or 0"}},
		}})
		c := newClient(t, &gcs.Options{Endpoint: endpoint, Anonymous: true, Header: http.Header{"X": {value}}})
		up := uploader(t, c, &upload.Options{Policy: hasty, ChunkSize: 1 << 20})
		_, err := put(t, up, 9<<20)
		e, ok := errors.AsType[*session.Error](err)
		if !ok || !errors.Is(err, session.ErrPermission) || e.Op != session.OpPut || e.Reason != "forbidden" {
			t.Errorf("%s: %v, want the 403 of the first data", value, err)
			continue
		}
		if value == "hunter2" && (strings.Contains(e.Message, value) || e.Message != "you sent [header], [header]0 or 0") {
			t.Errorf("%s: message %q", value, e.Message)
		}
		if _, ok := srv.ReadObject("bkt", "o"); ok == nil {
			t.Errorf("%s: the object exists, want none", value)
		}
	}
}

// TestProxyInMidUpload checks that a proxy that fails or requires a password does
// not end an upload whose session exists. At first contact a 407 is
// ErrCredentials.
func TestProxyInMidUpload(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("sends many MiB, or many requests")
	}
	srv, err := fakegcs.New(&fakegcs.Options{CreateBuckets: true})
	require.NoError(t, err)
	defer srv.Close()
	service := httptest.NewUnstartedServer(srv)
	service.Config.ErrorLog = log.New(io.Discard, "", 0)
	service.StartTLS()
	defer service.Close()
	var refuse atomic.Int64 // status of the reply to CONNECT
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if code := refuse.Load(); code != 0 {
			w.WriteHeader(int(code))
			return
		}
		tunnel(w, service.Listener.Addr().String())
	}))
	defer proxy.Close()
	proxyURL, err := url.Parse(proxy.URL)
	require.NoError(t, err)
	transport := upload.NewTransport(nil)
	transport.TLSClientConfig = service.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	transport.Proxy = http.ProxyURL(proxyURL)
	transport.DisableKeepAlives = true // each request sends its own CONNECT
	endpoint := "https://example.com"
	path, content := source(t, 5<<20)
	for _, code := range []int64{407, 502, 503} {
		refuse.Store(0)
		c := newClient(t, &gcs.Options{Endpoint: endpoint, Anonymous: true, Transport: transport})
		failures := 0
		up := uploader(t, c, &upload.Options{Policy: hasty, ChunkSize: 1 << 20, Observer: func(e upload.Event) {
			switch {
			case e.Kind == upload.Progress && e.Committed == 2<<20 && failures == 0:
				refuse.Store(code)
			case e.Kind == upload.Waiting:
				if failures++; failures == 3 {
					refuse.Store(0)
				}
			}
		}})
		spec := upload.Spec{Bucket: "bkt", Object: fmt.Sprint(code)}
		if _, err := up.File(t.Context(), path, spec); err != nil || failures < 3 {
			t.Errorf("%d in mid-upload: %v after %d failures", code, err, failures)
		}
		if got, _ := srv.ReadObject("bkt", spec.Object); !bytes.Equal(got, content) {
			t.Errorf("%d: object differs from the source", code)
		}

		refuse.Store(code)
		want := session.ErrRetriesExhausted
		if code == 407 {
			want = session.ErrCredentials
		}
		up = uploader(t, c, &upload.Options{Policy: hasty})
		if _, err := up.File(t.Context(), path, spec); !errors.Is(err, want) || !strings.Contains(err.Error(), fmt.Sprintf("proxy %s answered CONNECT with %d ", proxy.URL, code)) {
			t.Errorf("%d at first contact: %v, want %v", code, err, want)
		}
	}
}

// tunnel answers CONNECT.
func tunnel(w http.ResponseWriter, addr string) {
	server, err := net.Dial("tcp", addr)
	if err != nil {
		w.WriteHeader(502)
		return
	}
	client, buffered, err := w.(http.Hijacker).Hijack()
	if err != nil {
		server.Close()
		return
	}
	_, _ = io.WriteString(client, "HTTP/1.1 200 OK\r\n\r\n")
	go func() {
		_, _ = io.Copy(server, buffered) // it may have read the first byte
		server.Close()
	}()
	_, _ = io.Copy(client, server)
	client.Close()
}
