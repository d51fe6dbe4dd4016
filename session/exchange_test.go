package session_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"gcsup/chunk"
	"gcsup/internal/brief"
	"gcsup/internal/bucket"
	"gcsup/internal/ownconn"
	"gcsup/internal/require"
	"gcsup/internal/wiretest"
	"gcsup/session"
	"gcsup/session/internal/secrettest"
)

// TestRequests compares the bytes of each request.
func TestRequests(t *testing.T) {
	spec := session.Spec{Bucket: "bucket", Object: "object"}
	zero, one := int64(0), int64(1)
	rich := session.Spec{
		Bucket: "bucket", Object: "a/b c?&ü.txt", ContentType: "text/plain", ContentEncoding: "gzip",
		ContentDisposition: "inline", ContentLanguage: "de", CacheControl: "no-store", StorageClass: "NEARLINE",
		Metadata: map[string]string{"k": "v"}, PredefinedACL: "private", KMSKeyName: "projects/p/k", UserProject: "payer",
		IfGenerationMatch: &zero, IfMetagenerationMatch: &one,
	}
	const target = "/upload/storage/v1/b/bucket/o?uploadType=resumable&name=object&upload_id=" + secrettest.ID
	request := func(line, header string) string {
		return line + " HTTP/1.1\nHost: HOST\nUser-Agent: Go-http-client/1.1\n" + header + "\n"
	}
	start := func(query, header, body string) string {
		const contentType = "Content-Type: application/json; charset=UTF-8\n"
		return request("POST /upload/storage/v1/b/bucket/o?"+query, fmt.Sprintf("Content-Length: %d\n", len(body))+contentType+header) + body
	}
	put := func(header string) string { return request("PUT "+target, header) }
	attributed := session.Spec{
		Bucket: "bucket", Object: "object", MD5: append([]byte{1}, make([]byte, 15)...), CRC32C: new(uint32(0x01020304)),
		IfGenerationNotMatch: new(int64(0)), IfMetagenerationNotMatch: new(int64(2)),
		ACL: []session.ACLRule{
			{Entity: session.AllUsers, Role: session.RoleReader, EntityID: "not sent"},
			{Entity: "user-a@example.com", Role: session.RoleOwner, Email: "not sent"},
		},
		Contexts: &session.ObjectContexts{Custom: map[string]session.ObjectCustomContextPayload{"k": {Value: "v", CreateTime: time.Unix(1, 0)}}},
	}
	const binary = "X-Upload-Content-Type: application/octet-stream\n"
	ctx := t.Context()
	for _, c := range []struct {
		name string
		do   func(*session.Client, session.URI) session.Reply
		want string
	}{
		{"start", func(c *session.Client, _ session.URI) session.Reply { return c.Start(ctx, spec, 524289) },
			start("name=object&projection=full&uploadType=resumable", "X-Upload-Content-Length: 524289\n"+binary,
				`{"name":"object","contentType":"application/octet-stream"}`)},
		{"start of an empty object", func(c *session.Client, _ session.URI) session.Reply { return c.Start(ctx, spec, 0) },
			start("name=object&projection=full&uploadType=resumable", "X-Upload-Content-Length: 0\n"+binary,
				`{"name":"object","contentType":"application/octet-stream"}`)},
		{"start of a stream with everything", func(c *session.Client, _ session.URI) session.Reply { return c.Start(ctx, rich, -1) },
			start("ifGenerationMatch=0&ifMetagenerationMatch=1&kmsKeyName=projects%2Fp%2Fk&name=a%2Fb+c%3F%26%C3%BC.txt&predefinedAcl=private&projection=full&uploadType=resumable&userProject=payer",
				"X-Upload-Content-Type: text/plain\n",
				`{"name":"a/b c?\u0026ü.txt","contentType":"text/plain","contentEncoding":"gzip","contentDisposition":"inline","contentLanguage":"de","cacheControl":"no-store","storageClass":"NEARLINE","metadata":{"k":"v"}}`)},
		{"start with an ACL and checksums", func(c *session.Client, _ session.URI) session.Reply { return c.Start(ctx, attributed, -1) },
			start("ifGenerationNotMatch=0&ifMetagenerationNotMatch=2&name=object&projection=full&uploadType=resumable", binary,
				`{"name":"object","md5Hash":"AQAAAAAAAAAAAAAAAAAAAA==","contentType":"application/octet-stream","contexts":{"custom":{"k":{"value":"v"}}},"acl":[{"entity":"allUsers","role":"READER"},{"entity":"user-a@example.com","role":"OWNER"}],"crc32c":"AQIDBA=="}`)},
		{"start with compression", func(c *session.Client, _ session.URI) session.Reply {
			return c.Start(ctx, session.Spec{Bucket: "bucket", Object: "object", Gzip: true}, -1)
		}, start("name=object&projection=full&uploadType=resumable", binary, `{"name":"object","contentType":"application/octet-stream","contentEncoding":"gzip"}`)},
		{"put, size known", func(c *session.Client, uri session.URI) session.Reply {
			return c.Put(ctx, uri, chunk.Range{From: 262144, To: 262149}, 524289, strings.NewReader("bytes"))
		}, put("Content-Length: 5\nContent-Range: bytes 262144-262148/524289\nX-Guploader-No-308: yes\n") + "bytes"},
		{"put, size not known", func(c *session.Client, uri session.URI) session.Reply {
			return c.Put(ctx, uri, chunk.Range{From: 0, To: 1}, -1, strings.NewReader("b"))
		}, put("Content-Length: 1\nContent-Range: bytes 0-0/*\nX-Guploader-No-308: yes\n") + "b"},
		{"finalize with data", func(c *session.Client, uri session.URI) session.Reply {
			return c.Finalize(ctx, uri, chunk.Range{From: 262144, To: 262145}, 262145, 0x01020304, strings.NewReader("b"))
		}, put("Content-Length: 1\nContent-Range: bytes 262144-262144/262145\nX-Goog-Hash: crc32c=AQIDBA==\nX-Guploader-No-308: yes\n") + "b"},
		{"finalize without data", func(c *session.Client, uri session.URI) session.Reply {
			return c.Finalize(ctx, uri, chunk.Range{From: 262144, To: 262144}, 262144, 0xfffefdfc, nil)
		}, put("Content-Length: 0\nContent-Range: bytes */262144\nX-Goog-Hash: crc32c=//79/A==\nX-Guploader-No-308: yes\n")},
		{"finalize an empty object", func(c *session.Client, uri session.URI) session.Reply {
			return c.Finalize(ctx, uri, chunk.Range{}, 0, 0, nil)
		}, put("Content-Length: 0\nContent-Range: bytes */0\nX-Goog-Hash: crc32c=AAAAAA==\nX-Guploader-No-308: yes\n")},
		{"query", func(c *session.Client, uri session.URI) session.Reply { return c.Query(ctx, uri) },
			put("Content-Length: 0\nContent-Range: bytes */*\nX-Guploader-No-308: yes\n")},
		{"cancel", func(c *session.Client, uri session.URI) session.Reply { return c.Cancel(ctx, uri) },
			request("DELETE "+target, "Content-Length: 0\n")},
		{"stat", func(c *session.Client, _ session.URI) session.Reply { return c.Stat(ctx, rich) },
			request("GET /storage/v1/b/bucket/o/a%2Fb%20c%3F&%C3%BC.txt?userProject=payer", "")},
	} {
		w := wiretest.New(t, "HTTP/1.1 503 Service Unavailable\nContent-Length: 0\n\n")
		if r := c.do(w.Client(), uriAt(t, w.Endpoint())); r.Status != 503 {
			t.Errorf("%s: %+v", c.name, r)
		}
		got := w.Got()
		if len(got) != 1 {
			t.Errorf("%s: %d requests, want 1", c.name, len(got))
			continue
		}
		if got[0] != c.want {
			t.Errorf("%s: sent\n%s\nwant\n%s", c.name, got[0], c.want)
		}
	}
}

// TestInsertRequest compares the bytes of an Insert, whose boundary is random.
func TestInsertRequest(t *testing.T) {
	const all, some = "ifGenerationMatch=0&name=object&projection=full", "fields=bucket%2Cname%2Cgeneration%2Csize%2Ccrc32c%2Cmd5Hash&ifGenerationMatch=0&name=object"
	for _, c := range []struct {
		data, query string
		ctx         context.Context
	}{
		{"", all, t.Context()},
		{"b", all, t.Context()},
		{"b", some, brief.With(t.Context())},
		{strings.Repeat("x", 3*q), all, t.Context()},
	} {
		data := c.data
		w := wiretest.New(t, "HTTP/1.1 503 Service Unavailable\nContent-Length: 0\n\n")
		generation := int64(0)
		spec := session.Spec{Bucket: "bucket", Object: "object", ContentType: "text/plain", IfGenerationMatch: &generation}
		r := w.Client().Insert(c.ctx, spec, int64(len(data)), 0x01020304, strings.NewReader(data))
		if r.Op != session.OpInsert || r.Status != 503 || r.Sent != int64(len(data)) {
			t.Errorf("%d bytes: %+v", len(data), r)
		}
		got := w.Got()[0]
		_, boundary, _ := strings.Cut(got, "boundary=")
		boundary, _, _ = strings.Cut(boundary, "\n")
		body := fmt.Sprintf(`--%[1]s
Content-Type: application/json; charset=UTF-8

{"name":"object","contentType":"text/plain","crc32c":"AQIDBA=="}
--%[1]s
Content-Type: text/plain

%[2]s
--%[1]s--
`, boundary, data)
		want := fmt.Sprintf(`POST /upload/storage/v1/b/bucket/o?%s&uploadType=multipart HTTP/1.1
Host: HOST
User-Agent: Go-http-client/1.1
Content-Length: %d
Content-Type: multipart/related; boundary=%s

`, c.query, len(body)+strings.Count(body, "\n"), boundary) + body
		if got != want {
			t.Errorf("%d bytes: sent\n%.600s\nwant\n%.600s", len(data), got, want)
		}
	}
}

// TestPutOfNothing checks that a Put without bytes is not sent. It would
// finalize the object without a checksum.
func TestPutOfNothing(t *testing.T) {
	w := wiretest.New(t, "HTTP/1.1 200 OK\nContent-Length: 0\n\n")
	for _, total := range []int64{-1, 0, q} {
		r := w.Client().Put(t.Context(), uriAt(t, w.Endpoint()), chunk.Range{From: q, To: q}, total, strings.NewReader(""))
		_, a := session.Decide(session.State{Size: -1}, r)
		if !errors.Is(r.Err, session.ErrInvalid) || describe(a) != "ErrInvalid" {
			t.Errorf("total %d: %+v, %s, want ErrInvalid", total, r, describe(a))
		}
	}
	if got := w.Got(); len(got) != 0 {
		t.Errorf("sent\n%s", got[0])
	}
}

// TestBodyTooShort checks that a Put whose body is shorter than its range fails
// and does not hang.
func TestBodyTooShort(t *testing.T) {
	w := wiretest.New(t, "HTTP/1.1 200 OK\nContent-Length: 0\n\n")
	r := w.Client().Put(t.Context(), uriAt(t, w.Endpoint()), chunk.Range{From: q, To: 2 * q}, -1, strings.NewReader("short"))
	if r.Status != 0 || r.Err == nil || r.Sent != q+5 {
		t.Errorf("%+v, want no reply, and 5 bytes sent", r)
	}
}

// TestEarlyReply checks a server that replies before it has read the body. Put
// returns the reply, and no longer reads the body, although net/http still
// tries to.
func TestEarlyReply(t *testing.T) {
	const length = 64 << 20 // more than the buffers between client and server
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	go func() {
		c, err := listener.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		_, _ = io.ReadAtLeast(c, make([]byte, 4096), 4096)
		_, _ = io.WriteString(c, "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 4\r\n\r\nbusy")
		_, _ = io.Copy(io.Discard, c)
	}()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	endpoint := "http://" + listener.Addr().String()
	client := wiretest.NewClient(t, &http.Client{Transport: transport}, endpoint)
	body := &countingBody{}
	r := client.Put(t.Context(), uriAt(t, endpoint), chunk.Range{From: 0, To: length}, -1, body)
	read := body.n.Load()
	if r.Status != 503 || r.Message != "busy" {
		t.Errorf("%+v, want the early 503", r)
	}
	if r.Sent != read {
		t.Errorf("Sent = %d, but %d bytes were read from the body", r.Sent, read)
	}
	// The race detector and the following check show that the body is no longer
	// read.
	body.over = true
	transport.CloseIdleConnections()
	if again := body.n.Load(); again != read {
		t.Errorf("%d bytes were read after Put returned", again-read)
	}
}

// countingBody returns zeros. The test writes its field over without a lock, so
// that -race reports a Read at the same time.
type countingBody struct {
	n    atomic.Int64
	over bool
}

func (b *countingBody) Read(p []byte) (int, error) {
	if b.over {
		panic("read after the exchange")
	}
	clear(p)
	b.n.Add(int64(len(p)))
	return len(p), nil
}

// TestContextCause checks that the error is the cause of the context, so that
// the driver can distinguish a stall from a cancellation by the user.
func TestContextCause(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	w := wiretest.NewFunc(t, func(c net.Conn, _ string) {
		cancel(session.ErrStalled)
		_, _ = io.Copy(io.Discard, c) // until the client hangs up
	})
	r := w.Client().Query(ctx, uriAt(t, w.Endpoint()))
	if r.Status != 0 || !errors.Is(r.Err, session.ErrStalled) || !r.Retryable() {
		t.Errorf("%+v, want ErrStalled", r)
	}
}

// TestTransportThatCancels checks that a transport which cancels a request for its own
// reasons is a failure of the network: the context of the upload is not done.
func TestTransportThatCancels(t *testing.T) {
	hc := &http.Client{Transport: wiretest.RoundTrip(func(*http.Request) (*http.Response, error) {
		return nil, fmt.Errorf("another request ended the dial: %w", context.Canceled)
	})}
	r := wiretest.NewClient(t, hc, "").Query(t.Context(), uriAt(t, session.DefaultEndpoint))
	_, a := session.Decide(session.State{Size: q, Replayable: true}, r)
	if describe(a) != "wait query" || errors.Is(r.Err, context.Canceled) || r.Err.Error() != "another request ended the dial: context canceled" {
		t.Errorf("%s after %v, want wait query", describe(a), r.Err)
	}
	// At first contact too.
	spec := session.Spec{Bucket: "bucket", Object: "object"}
	if r := wiretest.NewClient(t, hc, "").Start(t.Context(), spec, q); !r.Retryable() {
		t.Errorf("start: %+v, want a retry", r)
	}
	// And while the reply arrives.
	hc.Transport = wiretest.RoundTrip(func(req *http.Request) (*http.Response, error) {
		body := io.MultiReader(strings.NewReader(`{"items":[`), iotest.ErrReader(fmt.Errorf("stream: %w", context.Canceled)))
		return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(body), Request: req}, nil
	})
	c := wiretest.NewClient(t, hc, "")
	_, read := bucket.Read(t.Context(), c, spec, 0)
	_, get := bucket.ReadConfig(t.Context(), c, "bucket", "")
	for name, r := range map[string]session.Reply{"read": read, "get": get} {
		if r.Status != 0 || !r.Retryable() || errors.Is(r.Err, context.Canceled) {
			t.Errorf("%s: %+v, want a retry", name, r)
		}
	}
}

// TestStallInTheReply checks that the Reply has the status of the header if the
// context ends while the body arrives.
func TestStallInTheReply(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	w := wiretest.NewFunc(t, func(c net.Conn, _ string) {
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{\"size\":\"5\"")
		cancel(session.ErrStalled)
		_, _ = io.Copy(io.Discard, c)
	})
	r := w.Client().Query(ctx, uriAt(t, w.Endpoint()))
	if r.Status != 200 && r.Err == nil || r.Object != nil {
		t.Errorf("%+v, want no object", r)
	}
}

// TestRedirectsAreNotFollowed checks that a redirect is returned as a reply and
// not followed, so that no data is sent to another host.
func TestRedirectsAreNotFollowed(t *testing.T) {
	elsewhere := wiretest.New(t, "HTTP/1.1 200 OK\nContent-Length: 0\n\n")
	for _, code := range []int{301, 302, 303, 307, 308} {
		w := wiretest.New(t, fmt.Sprintf("HTTP/1.1 %d Moved\nLocation: %s/there\nContent-Length: 0\n\n", code, elsewhere.Endpoint()))
		uri, c := uriAt(t, w.Endpoint()), w.Client()
		for name, r := range map[string]session.Reply{
			"put":      c.Put(t.Context(), uri, chunk.Range{To: 5}, -1, strings.NewReader("bytes")),
			"finalize": c.Finalize(t.Context(), uri, chunk.Range{To: 5}, 5, 1, bytes.NewReader([]byte("bytes"))),
			"query":    c.Query(t.Context(), uri),
			"cancel":   c.Cancel(t.Context(), uri),
			"start":    c.Start(t.Context(), session.Spec{Bucket: "bucket", Object: "object"}, 5),
			"insert":   c.Insert(t.Context(), session.Spec{Bucket: "bucket", Object: "object"}, 5, 1, strings.NewReader("bytes")),
			"stat":     c.Stat(t.Context(), session.Spec{Bucket: "bucket", Object: "object"}),
		} {
			if r.Status != code {
				t.Errorf("%s, %d: %+v", name, code, r)
			}
		}
	}
	if got := elsewhere.Got(); len(got) != 0 {
		t.Errorf("followed to another host:\n%s", got[0])
	}
}

// TestCallersClientIsLeftAlone checks that NewClient does not change the
// caller's http.Client.
func TestCallersClientIsLeftAlone(t *testing.T) {
	policy := func(*http.Request, []*http.Request) error { return nil }
	hc := &http.Client{CheckRedirect: policy}
	wiretest.NewClient(t, hc, "")
	if hc.CheckRedirect(nil, nil) != nil || hc.Transport != nil {
		t.Error("NewClient changed the http.Client that it was given")
	}
}

// TestClientTimeoutIsRefused checks that NewClient refuses a Timeout. It must
// not ignore the Timeout, and with it every long request would end.
func TestClientTimeoutIsRefused(t *testing.T) {
	_, err := session.NewClient(&http.Client{Timeout: time.Minute}, "")
	if err == nil || !strings.Contains(err.Error(), "Timeout of 1m0s") || !strings.Contains(err.Error(), "context") {
		t.Errorf("%v, want an error that names the context", err)
	}
}

func TestNewClient(t *testing.T) {
	for _, c := range []struct{ endpoint, want string }{
		{"", "https://storage.googleapis.com"},
		{"https://storage.europe-west3.rep.googleapis.com", "https://storage.europe-west3.rep.googleapis.com"},
		{"http://localhost:4443", "http://localhost:4443"},
		{"http://localhost:4443/storage/v1/", "http://localhost:4443"},
		{"HTTPS://Example.com", "https://example.com"},
		{"http://[::1]:80", "http://[::1]"},
		{"https://host:443", "https://host"},
		{"http://host:443", "http://host:443"},
		{"localhost:4443", ""},
		{"//host", ""},
		{"ftp://host", ""},
		{"https://", ""},
		{"https://user:pa55@host", ""},
		{"https://ho st", ""},
		{"http://host:port", ""},
	} {
		client, err := session.NewClient(nil, c.endpoint)
		switch {
		case c.want == "" && err == nil:
			t.Errorf("NewClient(%q) is no error", c.endpoint)
		case c.want == "" && !strings.Contains(err.Error(), "http"):
			t.Errorf("NewClient(%q): %v, want an error with the expected form", c.endpoint, err)
		case c.want == "" && strings.Contains(err.Error(), "pa55"):
			t.Errorf("NewClient(%q): %v: prints a password", c.endpoint, err)
		case c.want != "" && (err != nil || client.Endpoint() != c.want):
			t.Errorf("NewClient(%q) = %v, %v, want %s", c.endpoint, client, err, c.want)
		}
	}
}

// TestLocation checks which Location a new session may have.
func TestLocation(t *testing.T) {
	const foreign, missing = "foreign", "missing"
	for _, c := range []struct{ name, location, want string }{ // want is foreign, missing, or the path of the next request
		{"absolute", "Location: http://HOST" + secrettest.Path + "\n", secrettest.Path},
		{"no scheme", "Location: //HOST" + secrettest.Path + "\n", secrettest.Path},
		{"path", "Location: " + secrettest.Path + "\n", secrettest.Path},
		{"path, /resumable", "Location: /resumable" + secrettest.Path + "\n", "/resumable" + secrettest.Path},
		{"none", "", missing},
		{"empty", "Location:\n", missing},
		{"no URL", "Location: http://HOST:x/" + secrettest.ID + "\n", missing},
		{"another host", "Location: http://example.com" + secrettest.Path + "\n", foreign},
		{"another port", "Location: http://127.0.0.1:1" + secrettest.Path + "\n", foreign},
		{"another scheme", "Location: https://HOST" + secrettest.Path + "\n", foreign},
		{"with a password", "Location: http://user:pa55@HOST" + secrettest.Path + "\n", foreign},
		{"another host, no scheme", "Location: //example.com" + secrettest.Path + "\n", foreign},
		{"opaque", "Location: http:HOST?upload_id=" + secrettest.ID + "\n", foreign},
	} {
		for _, code := range []int{200, 201} {
			var host string
			w := wiretest.NewFunc(t, func(conn net.Conn, request string) {
				reply := fmt.Sprintf("HTTP/1.1 %d OK\nConnection: close\n%sContent-Length: 0\n\n", code, c.location)
				if !strings.HasPrefix(request, "POST") {
					reply = "HTTP/1.1 308 Resume Incomplete\nContent-Length: 0\n\n"
				}
				reply = strings.ReplaceAll(reply, "HOST", host)
				_, _ = io.WriteString(conn, strings.ReplaceAll(reply, "\n", "\r\n"))
			})
			host = strings.TrimPrefix(w.Endpoint(), "http://")
			client := w.Client()
			r := client.Start(t.Context(), session.Spec{Bucket: "bucket", Object: "object"}, 5)
			if r.Err != nil && (strings.Contains(r.Err.Error(), secrettest.ID) || strings.Contains(r.Err.Error(), "word")) {
				t.Errorf("%s: %v: contains a secret", c.name, r.Err)
			}
			switch c.want {
			case foreign:
				if !errors.Is(r.Err, session.ErrURIMismatch) || !r.URI.IsZero() || r.Status != 0 {
					t.Errorf("%s: %+v, want ErrURIMismatch", c.name, r)
				}
			case missing:
				if r.Err == nil || !r.URI.IsZero() || r.Status != code {
					t.Errorf("%s: %+v, want an error", c.name, r)
				}
			default:
				if r.Err != nil || r.URI.IsZero() || r.Status != code {
					t.Errorf("%s: %+v, want a session", c.name, r)
					continue
				}
				client.Query(t.Context(), r.URI)
				if got := w.Got(); !strings.HasPrefix(got[1], "PUT "+c.want+" HTTP/1.1\n") {
					t.Errorf("%s: the query is\n%s, want it at %s", c.name, got[1], c.want)
				}
			}
		}
	}
}

// TestLocationOfTheSameHost checks that the default port and the case of a host
// do not make it another host.
func TestLocationOfTheSameHost(t *testing.T) {
	for _, c := range []struct{ endpoint, location string }{
		{"https://storage.googleapis.com", "https://Storage.GoogleAPIs.com:443" + secrettest.Path},
		{"https://storage.googleapis.com:443", "https://storage.googleapis.com" + secrettest.Path},
		{"http://localhost", "http://localhost:80" + secrettest.Path},
		{"http://[::1]:8080", "http://[::1]:8080" + secrettest.Path},
	} {
		client := wiretest.NewClient(t, &http.Client{Transport: wiretest.RoundTrip(func(*http.Request) (*http.Response, error) {
			return wiretest.Response(200, http.Header{"Location": {c.location}}, ""), nil
		})}, c.endpoint)
		if r := client.Start(t.Context(), session.Spec{Bucket: "bucket", Object: "object"}, -1); r.Err != nil || r.URI.IsZero() {
			t.Errorf("endpoint %s, Location at %s: %v", c.endpoint, c.location, r.Err)
		}
	}
}

// TestConnectionIsReused checks that the exchanges of a long upload share a
// connection, and that a client without keep-alive uses each connection once, even
// if the HTTP client has an idle one.
func TestConnectionIsReused(t *testing.T) {
	var connections atomic.Int32
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			switch {
			case r.Header.Get("Content-Range") == "bytes */*":
				http.Error(w, strings.Repeat("long ", 10_000), 503)
			default:
				w.Header().Set("Range", "bytes=0-4")
				w.WriteHeader(308)
			}
		}),
		ConnState: func(_ net.Conn, s http.ConnState) {
			if s == http.StateNew {
				connections.Add(1)
			}
		},
		TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){},
	}
	go func() { _ = server.Serve(listener) }()
	defer server.Close()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	endpoint := "http://" + listener.Addr().String()
	client, uri := wiretest.NewClient(t, &http.Client{Transport: transport}, endpoint), uriAt(t, endpoint)
	for range 5 {
		client.Put(t.Context(), uri, chunk.Range{To: 5}, -1, strings.NewReader("bytes"))
		client.Query(t.Context(), uri)
	}
	if n := connections.Load(); n != 1 {
		t.Errorf("%d connections for 10 exchanges, want 1", n)
	}
	for range 5 {
		client.Put(ownconn.With(t.Context()), uri, chunk.Range{To: 5}, -1, strings.NewReader("bytes"))
		client.Query(t.Context(), uri) // leaves an idle connection
	}
	if n := connections.Load(); n != 11 {
		t.Errorf("%d connections for 10 more exchanges, want 10", n-1)
	}
	// A GET closes no connections that other uploads use. It replaces its own.
	for range 5 {
		client.Stat(ownconn.With(t.Context()), session.Spec{Bucket: "bucket", Object: "object"})
		client.Query(t.Context(), uri)
	}
	if n := connections.Load(); n != 16 {
		t.Errorf("%d connections for 10 more exchanges, want 5", n-11)
	}
}

// dying is a transport whose connection was used before, and is broken.
type dying struct{ reused, closed bool }

func (d *dying) RoundTrip(r *http.Request) (*http.Response, error) {
	httptrace.ContextClientTrace(r.Context()).GotConn(httptrace.GotConnInfo{Reused: d.reused})
	return nil, io.EOF
}

func (d *dying) CloseIdleConnections() { d.closed = true }

// TestIdleConnectionsAreClosed checks that a client whose data failed on a reused connection closes the
// idle ones, which are probably broken, too.
func TestIdleConnectionsAreClosed(t *testing.T) {
	for _, reused := range []bool{false, true} {
		transport := &dying{reused: reused}
		c := wiretest.NewClient(t, &http.Client{Transport: transport}, "")
		c.Query(t.Context(), freshURI(t))
		if transport.closed {
			t.Errorf("reused %v: a query closes idle connections", reused)
		}
		if c.Put(t.Context(), freshURI(t), chunk.Range{To: 5}, -1, strings.NewReader("bytes")); transport.closed != reused {
			t.Errorf("reused %v: the idle connections are closed: %v", reused, transport.closed)
		}
	}
}

// uriAt returns a session URI at an endpoint, as Start would return it.
func uriAt(t testing.TB, endpoint string) session.URI {
	t.Helper()
	return wiretest.URI(t, endpoint, secrettest.Path)
}

func freshURI(t testing.TB) session.URI { return uriAt(t, session.DefaultEndpoint) }
