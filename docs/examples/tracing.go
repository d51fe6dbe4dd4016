package examples

import (
	"net/http"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"gcsup/upload"
	"gcsup/upload/otel"
)

// NewTraced returns an Uploader whose uploads and requests are spans, with metrics.
// base adds the credentials. Wrap it with otel.Transport and not with otelhttp alone,
// which would export the session URI, a secret.
func NewTraced(base http.RoundTripper, traces trace.TracerProvider, metrics metric.MeterProvider, opts upload.Options) (*upload.Uploader, error) {
	telemetry, err := otel.New(&otel.Options{TracerProvider: traces, MeterProvider: metrics})
	if err != nil {
		return nil, err
	}
	opts.Observer, opts.Exchange = telemetry.Observe, telemetry.Exchange
	return upload.New(&http.Client{Transport: otel.Transport(base, otelhttp.WithTracerProvider(traces))}, &opts)
}
