// Package wiretest has a server for tests that compare the bytes of requests, and send replies byte by byte.
package wiretest

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"gcsup/session"
)

// Wire is a server that records the bytes of each request and sends given bytes
// as replies.
type Wire struct {
	t        *testing.T
	listener net.Listener
	wg       sync.WaitGroup

	mu       sync.Mutex
	requests []string
}

// New returns a Wire that sends the n-th reply to the n-th request, and the
// last reply to all later ones. It adds Connection: close to each reply,
// because it closes the connection after the reply.
func New(t *testing.T, replies ...string) *Wire {
	t.Helper()
	n := 0
	return NewFunc(t, func(c net.Conn, _ string) {
		reply := strings.Replace(replies[min(n, len(replies)-1)], "\n", "\nConnection: close\n", 1)
		n++
		_, _ = io.WriteString(c, strings.ReplaceAll(reply, "\n", "\r\n"))
	})
}

// NewFunc returns a Wire that calls a function with each connection and the
// request that was read from it, one at a time.
func NewFunc(t *testing.T, answer func(c net.Conn, request string)) *Wire {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &Wire{t: t, listener: listener}
	w.wg.Go(func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			request := readRequest(c)
			w.mu.Lock()
			w.requests = append(w.requests, request)
			w.mu.Unlock()
			answer(c, request)
			_ = c.Close()
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		w.wg.Wait()
	})
	return w
}

// readRequest reads a request and its body of Content-Length bytes.
func readRequest(c net.Conn) string {
	var b strings.Builder
	r := bufio.NewReaderSize(c, 1)
	length := int64(0)
	for {
		line, err := r.ReadString('\n')
		b.WriteString(line)
		if err != nil {
			return b.String()
		}
		if value, ok := strings.CutPrefix(line, "Content-Length: "); ok {
			for _, digit := range strings.TrimSpace(value) {
				length = length*10 + int64(digit-'0')
			}
		}
		if line == "\r\n" {
			break
		}
	}
	_, _ = io.CopyN(&b, r, length)
	return b.String()
}

// Endpoint returns the endpoint of the server.
func (w *Wire) Endpoint() string { return "http://" + w.listener.Addr().String() }

// Got returns the requests, with the host as HOST and without carriage returns.
func (w *Wire) Got() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []string
	for _, r := range w.requests {
		r = strings.ReplaceAll(r, w.listener.Addr().String(), "HOST")
		out = append(out, strings.ReplaceAll(r, "\r\n", "\n"))
	}
	return out
}

// Client returns a Client of the wire, whose connections are closed at the end
// of the test.
func (w *Wire) Client() *session.Client {
	w.t.Helper()
	transport := &http.Transport{DisableCompression: true}
	w.t.Cleanup(transport.CloseIdleConnections)
	return NewClient(w.t, &http.Client{Transport: transport}, w.Endpoint())
}

// NewClient returns session.NewClient(hc, endpoint).
func NewClient(t testing.TB, hc *http.Client, endpoint string) *session.Client {
	t.Helper()
	c, err := session.NewClient(hc, endpoint)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// RoundTrip is a function that implements http.RoundTripper.
type RoundTrip func(*http.Request) (*http.Response, error)

// RoundTrip calls f.
func (f RoundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Response returns an HTTP response with the given parts.
func Response(status int, header http.Header, body string) *http.Response {
	return &http.Response{
		StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
	}
}

// URI returns the URI of a session whose Location is endpoint+path.
func URI(t testing.TB, endpoint, path string) session.URI {
	t.Helper()
	c := NewClient(t, &http.Client{Transport: RoundTrip(func(*http.Request) (*http.Response, error) {
		return Response(200, http.Header{"Location": {endpoint + path}}, ""), nil
	})}, endpoint)
	r := c.Start(t.Context(), session.Spec{Bucket: "bucket", Object: "object"}, -1)
	if r.URI.IsZero() {
		t.Fatalf("no session: %v", r.Err)
	}
	return r.URI
}
