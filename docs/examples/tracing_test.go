package examples

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"gcsup/upload"
)

func TestNewTraced(t *testing.T) {
	srv := emulator(t)
	spans, reader := tracetest.NewInMemoryExporter(), sdkmetric.NewManualReader()
	traces := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	up, err := NewTraced(srv.Client().Transport, traces, sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)), upload.Options{Endpoint: srv.URL})
	if err != nil {
		t.Fatal(err)
	}
	ctx, request := traces.Tracer("service").Start(t.Context(), "request")
	if _, err := up.Bytes(ctx, content(9<<20), upload.Spec{Bucket: "bucket", Object: "o"}); err != nil {
		t.Fatal(err)
	}
	request.End()

	var names []string
	for _, span := range spans.GetSpans() {
		names = append(names, span.Name)
		if span.SpanContext.TraceID() != request.SpanContext().TraceID() {
			t.Errorf("the span %s is in another trace", span.Name)
		}
		for _, a := range span.Attributes {
			if _, id, ok := strings.Cut(a.Value.String(), "upload_id="); ok && !strings.HasPrefix(id, "redacted") {
				t.Errorf("the attribute %s of %s has the session URI", a.Key, span.Name)
			}
		}
	}
	slices.Sort(names)
	// Start, data, the last bytes with the checksum, the upload and its caller.
	want := []string{"HTTP " + http.MethodPost, "HTTP " + http.MethodPut, "HTTP " + http.MethodPut, "gcsup.upload", "request"}
	if !slices.Equal(names, want) {
		t.Errorf("spans %q, want %q", names, want)
	}

	var collected metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &collected); err != nil {
		t.Fatal(err)
	}
	for _, m := range collected.ScopeMetrics[0].Metrics {
		if sizes, ok := m.Data.(metricdata.Histogram[int64]); ok && m.Name == "gcsup.upload.size" && sizes.DataPoints[0].Sum == 9<<20 {
			return
		}
	}
	t.Error("no metric has the size of the upload")
}
