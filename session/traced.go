package session

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Traced returns base with a tracing transport around it that does not learn the
// session's secret. Instrumentation such as otelhttp exports the URL of each
// request, and the upload_id in the URL of a session lets any reader of the trace
// write to the upload.
//
//	transport := session.Traced(func(next http.RoundTripper) http.RoundTripper {
//		return otelhttp.NewTransport(next)
//	}, gcs.NewTransport())
//	client, err := gcs.New(ctx, &gcs.Options{Transport: transport})
//
// The tracing transport sees upload_id=redacted in the URL, and a reply without
// the headers that hold the secret. The request that base gets, and the reply that
// the caller gets, are whole. Both keep the header that the tracing transport
// adds, such as Traceparent. A nil base is http.DefaultTransport.
//
// The tracing transport must pass the context of the request on, or one made from
// it. It still sees the other headers of a request, Authorization among them, and
// must not record those.
func Traced(trace func(next http.RoundTripper) http.RoundTripper, base http.RoundTripper) http.RoundTripper {
	if base == nil {
		base = http.DefaultTransport
	}
	return &traced{tracing: trace(unveiled{base}), base: base}
}

// traced gives a request without its secret to the tracing transport.
type traced struct {
	tracing http.RoundTripper // ends in unveiled
	base    http.RoundTripper
}

// veiled is what the tracing transport does not see of one request. It travels in
// the context.
type veiled struct {
	url    *url.URL
	header http.Header // of the reply
}

type veiledKey struct{}

// secretHeaders hold the upload_id in the reply that opens a session, or its copy.
var secretHeaders = []string{"Location", "X-Guploader-Uploadid", "X-Goog-Upload-Url", "X-Goog-Upload-Control-Url"}

func (t *traced) RoundTrip(req *http.Request) (*http.Response, error) {
	v := &veiled{url: req.URL}
	public := req.Clone(context.WithValue(req.Context(), veiledKey{}, v))
	public.URL = withoutUploadID(req.URL)
	resp, err := t.tracing.RoundTrip(public)
	if resp != nil {
		for key, values := range v.header {
			resp.Header[key] = values
		}
		resp.Request = req
	}
	return resp, err
}

// CloseIdleConnections closes those of base.
func (t *traced) CloseIdleConnections() {
	if c, ok := t.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// withoutUploadID is u with another upload_id. The rest stays byte by byte.
func withoutUploadID(u *url.URL) *url.URL {
	out := *u
	pairs := strings.Split(u.RawQuery, "&")
	for i, pair := range pairs {
		key, _, _ := strings.Cut(pair, "=")
		if name, err := url.QueryUnescape(key); err != nil || strings.EqualFold(name, "upload_id") {
			pairs[i] = "upload_id=redacted"
		}
	}
	out.RawQuery = strings.Join(pairs, "&")
	return &out
}

// unveiled gives base the request with its secret, and hides the reply's.
type unveiled struct{ base http.RoundTripper }

func (u unveiled) RoundTrip(req *http.Request) (*http.Response, error) {
	v, ok := req.Context().Value(veiledKey{}).(*veiled)
	if !ok {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		// Without it the service would be asked for another session, and say that
		// there is none.
		return nil, fmt.Errorf("%w: the tracing transport has dropped the context of the request", ErrInvalid)
	}
	whole := *req
	whole.URL = v.url
	resp, err := u.base.RoundTrip(&whole)
	if err != nil {
		// The text may have the URL, and a tracing transport records it.
		return resp, transportError(context.Background(), newURI(v.url.String()), err)
	}
	shown := *resp
	shown.Header = resp.Header.Clone()
	shown.Request = req
	v.header = http.Header{}
	for key, values := range resp.Header {
		if slices.ContainsFunc(secretHeaders, func(secret string) bool { return strings.EqualFold(secret, key) }) {
			v.header[key] = values
			shown.Header.Del(key)
		}
	}
	return &shown, nil
}
