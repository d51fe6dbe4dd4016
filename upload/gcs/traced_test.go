package gcs_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/embedded"
	"go.opentelemetry.io/otel/trace/noop"

	"gcsup/session"
	"gcsup/upload"
	"gcsup/upload/gcs"
)

// TestOpenTelemetrySeesNoSecret checks that otelhttp under session.Traced does not
// export the session's secret in url.full. Without session.Traced it does.
func TestOpenTelemetrySeesNoSecret(t *testing.T) {
	clean(t)
	srv, endpoint := emulator(t, nil)
	for _, hidden := range []bool{false, true} {
		spans := &spans{}
		tracing := func(next http.RoundTripper) http.RoundTripper {
			return otelhttp.NewTransport(next, otelhttp.WithTracerProvider(spans))
		}
		var mu sync.Mutex
		ids := map[string]bool{}
		base := roundTrip(func(r *http.Request) (*http.Response, error) {
			mu.Lock()
			defer mu.Unlock()
			if id := r.URL.Query().Get("upload_id"); id != "" {
				ids[id] = true
			}
			return http.DefaultTransport.RoundTrip(r)
		})
		transport := tracing(base)
		if hidden {
			transport = session.Traced(tracing, base)
		}
		c := newClient(t, &gcs.Options{Endpoint: endpoint, Anonymous: true, Transport: transport})
		path, content := source(t, 9<<20)
		if _, err := uploader(t, c, nil).File(t.Context(), path, upload.Spec{Bucket: "bkt", Object: "o"}); err != nil {
			t.Fatal(err)
		}
		if got, _ := srv.ReadObject("bkt", "o"); !bytes.Equal(got, content) {
			t.Error("object differs from the source")
		}
		exported := strings.Join(spans.attributes, "\n")
		if len(ids) != 1 || !strings.Contains(exported, "url.full=") {
			t.Fatalf("%d sessions, exported:\n%s", len(ids), exported)
		}
		for id := range ids {
			if ids["redacted"] || strings.Contains(exported, id) == hidden {
				t.Errorf("hidden = %v, session %s, exported:\n%s", hidden, id, exported)
			}
		}
	}
}

// spans records the attributes of all spans.
type spans struct {
	embedded.TracerProvider
	mu         sync.Mutex
	attributes []string
}

func (s *spans) Tracer(string, ...trace.TracerOption) trace.Tracer { return tracer{spans: s} }

type tracer struct {
	embedded.Tracer
	spans *spans
}

func (t tracer) Start(ctx context.Context, _ string, opts ...trace.SpanStartOption) (context.Context, trace.Span) {
	config := trace.NewSpanStartConfig(opts...)
	span := span{spans: t.spans}
	span.SetAttributes(config.Attributes()...)
	return ctx, span
}

type span struct {
	noop.Span
	spans *spans
}

func (span) IsRecording() bool { return true }

func (s span) SetAttributes(attributes ...attribute.KeyValue) {
	s.spans.mu.Lock()
	defer s.spans.mu.Unlock()
	for _, a := range attributes {
		s.spans.attributes = append(s.spans.attributes, fmt.Sprintf("%s=%s", a.Key, a.Value.AsString()))
	}
}
