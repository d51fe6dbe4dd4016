package session_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"gcsup/chunk"
	"gcsup/internal/multipart"
	"gcsup/internal/wiretest"
	"gcsup/session"
	"gcsup/session/internal/secrettest"
)

// recorder is a tracing transport that records everything that it sees.
type recorder struct {
	next http.RoundTripper
	mu   sync.Mutex
	seen []string
}

func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.Header.Set("Traceparent", "00-1")
	resp, err := r.next.RoundTrip(req)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen = append(r.seen, fmt.Sprintf("%s %v %s %v", req.Method, req.URL, req.RequestURI, req.Header), fmt.Sprint(err))
	if resp != nil {
		r.seen = append(r.seen, fmt.Sprintf("%d %v %v", resp.StatusCode, resp.Header, resp.Request.URL))
	}
	return resp, err
}

// exchanges makes each exchange of a session once.
func exchanges(t *testing.T, transport http.RoundTripper, w *wiretest.Wire) map[string]session.Reply {
	t.Helper()
	c := wiretest.NewClient(t, &http.Client{Transport: transport}, w.Endpoint())
	started := c.Start(t.Context(), session.Spec{Bucket: "bucket", Object: "object"}, 5)
	return map[string]session.Reply{
		"start":    started,
		"put":      c.Put(t.Context(), started.URI, chunk.Range{To: q}, -1, strings.NewReader(strings.Repeat("x", q))),
		"query":    c.Query(t.Context(), started.URI),
		"finalize": c.Finalize(t.Context(), started.URI, chunk.Range{To: 5}, 5, 1, strings.NewReader("bytes")),
		"cancel":   c.Cancel(t.Context(), started.URI),
	}
}

// newTracedWire returns a wire that replies to every request with a session and
// its secret headers.
func newTracedWire(t *testing.T) *wiretest.Wire {
	return wiretest.New(t, "HTTP/1.1 200 OK\nLocation: "+secrettest.Path+"\nX-GUploader-UploadID: "+secrettest.ID+"\nContent-Length: 0\n\n")
}

// TestTracedTransportSeesNoSecret checks that no URL, header or error that a
// tracing transport can record has the upload_id, and that the exchanges work.
func TestTracedTransportSeesNoSecret(t *testing.T) {
	w := newTracedWire(t)
	tracing := &recorder{}
	transport := session.Traced(func(next http.RoundTripper) http.RoundTripper {
		tracing.next = next
		return tracing
	}, nil)
	for name, r := range exchanges(t, transport, w) {
		if r.Status != 200 || r.Err != nil {
			t.Errorf("%s: %+v, want 200", name, r)
		}
	}
	requests := w.Got()
	if len(requests) != 5 {
		t.Fatalf("%d requests, want 5", len(requests))
	}
	for i, request := range requests {
		if i > 0 && !strings.Contains(request, secrettest.Path+" HTTP/1.1\n") || !strings.Contains(request, "Traceparent: 00-1\n") {
			t.Errorf("request without its session, or without what the tracing transport added:\n%.300s", request)
		}
	}
	if len(tracing.seen) != 15 || !strings.Contains(tracing.seen[3], "name=object&upload_id=redacted") {
		t.Errorf("the tracing transport saw %d texts, want 15 with upload_id=redacted: %q", len(tracing.seen), tracing.seen)
	}
	for _, text := range tracing.seen {
		if secrettest.In(text) {
			t.Errorf("the tracing transport saw %s", text)
		}
	}
}

// TestTracedErrorsKeepTheSecrets checks that the tracing transport does not see a session URI, an upload ID or an
// encryption key in a request, or in an error that quotes them, that the server gets them, and that errors.Is still
// works on the error.
func TestTracedErrorsKeepTheSecrets(t *testing.T) {
	k := testKey(t, 'K')
	tracing := &recorder{}
	var sent string
	transport := session.Traced(func(next http.RoundTripper) http.RoundTripper {
		tracing.next = next
		return tracing
	}, wiretest.RoundTrip(func(r *http.Request) (*http.Response, error) {
		sent = fmt.Sprintf("%s %v", r.URL, r.Header)
		return nil, fmt.Errorf("%s: %w", sent, io.ErrUnexpectedEOF)
	}))
	c := wiretest.NewClient(t, &http.Client{Transport: transport}, "")
	uploadURI := wiretest.URI(t, session.DefaultEndpoint, "/bucket/object?uploadId="+secrettest.ID)
	spec := session.Spec{Bucket: "bucket", Object: "object", EncryptionKey: k}
	for name, exchange := range map[string]func() session.Reply{
		"query":              func() session.Reply { return c.Query(t.Context(), freshURI(t)) },
		"start with key":     func() session.Reply { return c.Start(t.Context(), spec, 5) },
		"abort of an upload": func() session.Reply { return multipart.Abort(t.Context(), c, spec, uploadURI) },
	} {
		tracing.seen = nil
		r := exchange()
		if !errors.Is(r.Err, io.ErrUnexpectedEOF) || !secrettest.In(sent) && !hasKey(sent, k) {
			t.Errorf("%s: %v, want what base returned; the server got %s", name, r.Err, sent)
		}
		if text := strings.Join(tracing.seen, "\n") + chain(r.Err); tracing.seen == nil || secrettest.In(text) || hasKey(text, k) {
			t.Errorf("%s: the tracing transport saw, or the error has %s", name, text)
		}
	}
}

// TestTracedWithoutItsContext checks that a request is not sent if the tracing
// transport dropped its context.
func TestTracedWithoutItsContext(t *testing.T) {
	w := newTracedWire(t)
	transport := session.Traced(func(next http.RoundTripper) http.RoundTripper {
		return wiretest.RoundTrip(func(r *http.Request) (*http.Response, error) { return next.RoundTrip(r.Clone(context.Background())) })
	}, nil)
	r := wiretest.NewClient(t, &http.Client{Transport: transport}, w.Endpoint()).Query(t.Context(), uriAt(t, w.Endpoint()))
	if !errors.Is(r.Err, session.ErrInvalid) || len(w.Got()) != 0 {
		t.Errorf("%+v, %d requests, want ErrInvalid and none", r, len(w.Got()))
	}
}

// TestTracedClosesConnections checks that http.Client.CloseIdleConnections
// reaches base.
func TestTracedClosesConnections(t *testing.T) {
	base := &closing{RoundTripper: http.DefaultTransport}
	hc := &http.Client{Transport: session.Traced(func(next http.RoundTripper) http.RoundTripper { return next }, base)}
	hc.CloseIdleConnections()
	if !base.closed {
		t.Error("CloseIdleConnections did not reach base")
	}
}

type closing struct {
	http.RoundTripper
	closed bool
}

func (c *closing) CloseIdleConnections() { c.closed = true }
