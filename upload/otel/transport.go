package otel

import (
	"net/http"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"

	"gcsup/session"
)

// Transport returns a transport that makes a span for each HTTP request, with
// otelhttp, and sends it with base. The spans have upload_id=redacted in url.full,
// see [session.Traced]. A nil base means http.DefaultTransport.
func Transport(base http.RoundTripper, opts ...otelhttp.Option) http.RoundTripper {
	return session.Traced(func(next http.RoundTripper) http.RoundTripper { return otelhttp.NewTransport(next, opts...) }, base)
}
