package otel_test

import (
	"net/http"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/trace"
)

func withTracer(p trace.TracerProvider) otelhttp.Option { return otelhttp.WithTracerProvider(p) }

// otelhttpTransport is the transport of a program that does not use Transport.
func otelhttpTransport(base http.RoundTripper, p trace.TracerProvider) http.RoundTripper {
	return otelhttp.NewTransport(base, withTracer(p))
}
