package session

import (
	"cmp"
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"gcsup/session/internal/secret"
)

// Traced wraps base with a tracing transport and hides the secret of a session
// from it. Instrumentation such as otelhttp exports the URL of each request.
// With the upload_id in the URL of a session, any reader of the trace can write
// to the upload.
//
//	transport := session.Traced(func(next http.RoundTripper) http.RoundTripper {
//		return otelhttp.NewTransport(next)
//	}, upload.NewTransport(nil))
//	client, err := gcs.New(ctx, &gcs.Options{Transport: transport})
//
// The tracing transport sees upload_id=redacted in the URL, and a reply without the
// headers that have the secret. For a multipart upload it does not see the bodies of
// replies, because some have the upload ID. It does not see an encryption key. base
// gets the complete request, and the caller the complete reply. A header that the
// tracing transport adds, such as Traceparent, is kept. A nil base means
// http.DefaultTransport.
//
// The tracing transport must pass on the context of the request or a context
// derived from it. It sees the other headers of a request, including
// Authorization, and must not record them.
func Traced(trace func(next http.RoundTripper) http.RoundTripper, base http.RoundTripper) http.RoundTripper {
	base = cmp.Or(base, http.DefaultTransport)
	if trace == nil {
		return base
	}
	return &traced{tracing: trace(unveiled{base}), base: base}
}

// traced passes each request without its secret to the tracing transport.
type traced struct {
	tracing http.RoundTripper // ends in unveiled
	base    http.RoundTripper
}

// veiled has the parts of a request and its reply that are hidden from the
// tracing transport. The context of the request has it.
type veiled struct {
	url    *url.URL
	key    []string      // the header of the request that has the encryption key
	header http.Header   // of the reply
	body   io.ReadCloser // of the reply; nil if the tracing transport sees it
}

// hiddenBody is the body of a reply that the tracing transport does not see. Close
// also closes shown, the body that the tracing transport sees instead.
type hiddenBody struct {
	io.ReadCloser
	shown io.Closer
}

func (b hiddenBody) Close() error { return errors.Join(b.ReadCloser.Close(), b.shown.Close()) }

type veiledKey struct{}

// secretHeaders lists the headers of a reply that have the upload_id.
var secretHeaders = []string{"Location", "X-Guploader-Uploadid", "X-Goog-Upload-Url", "X-Goog-Upload-Control-Url"}

func (t *traced) RoundTrip(req *http.Request) (*http.Response, error) {
	v := &veiled{url: req.URL, key: req.Header[encryptionKeyHeader]}
	public := req.Clone(context.WithValue(req.Context(), veiledKey{}, v))
	public.URL = withoutUploadID(req.URL)
	delete(public.Header, encryptionKeyHeader)
	resp, err := t.tracing.RoundTrip(public)
	if resp != nil {
		maps.Copy(resp.Header, v.header)
		if v.body != nil {
			resp.Body = hiddenBody{v.body, resp.Body}
		}
		resp.Request = req
	} else if v.body != nil {
		_ = v.body.Close()
	}
	return resp, err
}

// CloseIdleConnections closes the idle connections of base.
func (t *traced) CloseIdleConnections() {
	(&http.Client{Transport: t.base}).CloseIdleConnections()
}

// withoutUploadID returns u with a redacted upload_id or uploadId. The other bytes of the
// URL do not change.
func withoutUploadID(u *url.URL) *url.URL {
	out := *u
	pairs := strings.Split(u.RawQuery, "&")
	for i, pair := range pairs {
		key, _, _ := strings.Cut(pair, "=")
		switch name, err := url.QueryUnescape(key); {
		case err != nil, strings.EqualFold(name, "upload_id"):
			pairs[i] = "upload_id=redacted"
		case strings.EqualFold(name, "uploadId"):
			pairs[i] = "uploadId=redacted"
		}
	}
	out.RawQuery = strings.Join(pairs, "&")
	return &out
}

// unveiled passes the request with its secret to base, and hides the secret of
// the reply.
type unveiled struct{ base http.RoundTripper }

func (u unveiled) RoundTrip(req *http.Request) (*http.Response, error) {
	v, ok := req.Context().Value(veiledKey{}).(*veiled)
	if !ok {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		// Without the URL, the request would name a session that does not
		// exist.
		return nil, invalid("the tracing transport dropped the context of the request")
	}
	whole := *req
	whole.URL = v.url
	if v.key != nil {
		whole.Header = req.Header.Clone()
		whole.Header[encryptionKeyHeader] = v.key
	}
	resp, err := u.base.RoundTrip(&whole)
	if err != nil {
		// The text may have the URL, and a tracing transport may record it.
		return resp, transportError(req.Context(), scrubber(URI(secret.New(v.url.String())), whole.Header), err)
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
	if q := v.url.Query(); q.Has("uploads") || q.Has("uploadId") {
		v.body, shown.Body = resp.Body, http.NoBody
	}
	return &shown, nil
}
