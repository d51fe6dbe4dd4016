package otel_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"gcsup/backoff"
	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/session"
	"gcsup/session/state"
	"gcsup/upload"
	"gcsup/upload/otel"
)

// hasty is a policy with short waits, for tests over real connections.
var hasty = backoff.Policy{Initial: time.Millisecond, Maximum: time.Millisecond}

const (
	mib  = 1 << 20
	size = 4*mib + 5
)

var spec = upload.Spec{Bucket: "bkt", Object: "some/object"}

// setting is a service, and an uploader whose telemetry is kept in memory.
type setting struct {
	t      *testing.T
	srv    *fakegcs.TestServer
	spans  *tracetest.InMemoryExporter
	traces *trace.TracerProvider
	reader *sdkmetric.ManualReader
	store  *state.Dir
	path   string // of a file of size bytes
	up     *upload.Uploader
}

func newSetting(t *testing.T, faults []faults.Fault, with ...func(*upload.Options)) *setting {
	t.Helper()
	s := &setting{t: t, spans: tracetest.NewInMemoryExporter(), reader: sdkmetric.NewManualReader()}
	s.traces = trace.NewTracerProvider(trace.WithSyncer(s.spans))
	s.srv = fakegcs.NewServer(t, &fakegcs.Options{CreateBuckets: true, Faults: faults})
	telemetry, err := otel.New(&otel.Options{
		TracerProvider: s.traces, MeterProvider: sdkmetric.NewMeterProvider(sdkmetric.WithReader(s.reader)),
	})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if s.store, err = state.OpenDir(filepath.Join(dir, "state")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.store.Close() })
	s.path = filepath.Join(dir, "source")
	if err := os.WriteFile(s.path, make([]byte, size), 0o600); err != nil {
		t.Fatal(err)
	}
	opts := &upload.Options{
		Endpoint: s.srv.URL, Store: s.store, Policy: hasty, ChunkSize: mib,
		Observer: telemetry.Observe, Exchange: telemetry.Exchange,
	}
	for _, f := range with {
		f(opts)
	}
	if s.up, err = upload.New(s.srv.Client(), opts); err != nil {
		t.Fatal(err)
	}
	return s
}

// span returns the attributes of the only span, and its events by name.
func (s *setting) span() (span tracetest.SpanStub, attributes map[string]string, events map[string][]map[string]string) {
	s.t.Helper()
	spans := s.spans.GetSpans()
	if len(spans) != 1 {
		s.t.Fatalf("%d spans, want one", len(spans))
	}
	events = map[string][]map[string]string{}
	for _, e := range spans[0].Events {
		events[e.Name] = append(events[e.Name], texts(e.Attributes))
	}
	return spans[0], texts(spans[0].Attributes), events
}

func texts(attributes []attribute.KeyValue) map[string]string {
	m := map[string]string{}
	for _, a := range attributes {
		m[string(a.Key)] = a.Value.String()
	}
	return m
}

// point is one series of a metric: its value, or its count and sum.
type point struct {
	attributes map[string]string
	value, sum float64
}

// metrics returns the series of each metric.
func (s *setting) metrics() map[string][]point {
	s.t.Helper()
	var data metricdata.ResourceMetrics
	if err := s.reader.Collect(context.Background(), &data); err != nil {
		s.t.Fatal(err)
	}
	all := map[string][]point{}
	for _, scope := range data.ScopeMetrics {
		for _, m := range scope.Metrics {
			if m.Unit == "" || m.Description == "" {
				s.t.Errorf("%s has no unit or no description", m.Name)
			}
			add := func(set attribute.Set, value, sum float64) {
				all[m.Name] = append(all[m.Name], point{texts(set.ToSlice()), value, sum})
			}
			switch v := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range v.DataPoints {
					add(p.Attributes, float64(p.Value), 0)
				}
			case metricdata.Histogram[int64]:
				for _, p := range v.DataPoints {
					add(p.Attributes, float64(p.Count), float64(p.Sum))
				}
			case metricdata.Histogram[float64]:
				for _, p := range v.DataPoints {
					add(p.Attributes, float64(p.Count), p.Sum)
				}
			default:
				s.t.Errorf("%s is %T", m.Name, v)
			}
		}
	}
	return all
}

func wantAttributes(t *testing.T, got, want map[string]string) {
	t.Helper()
	for key, value := range want {
		if got[key] != value {
			t.Errorf("%s = %q, want %q", key, got[key], value)
		}
	}
}

func status(code int) faults.Action {
	return faults.Action{Effect: faults.EffectStatus, Status: code}
}

// TestUpload checks the span and the metrics of an upload with a failure and a
// lost session.
func TestUpload(t *testing.T) {
	s := newSetting(t, []faults.Fault{
		{Match: faults.Match{Op: faults.OpPut}, Skip: 1, Do: status(503)},
		{Match: faults.Match{Op: faults.OpPut}, Skip: 2, Do: faults.Action{Effect: faults.EffectNotFound}},
	})
	ctx, parent := s.traces.Tracer("test").Start(t.Context(), "parent")
	res, err := s.up.File(ctx, s.path, spec)
	if err != nil {
		t.Fatal(err)
	}
	span, attributes, events := s.span()
	if span.Name != "gcsup.upload" || span.Parent.SpanID() != parent.SpanContext().SpanID() || span.Status.Code != codes.Unset || !span.EndTime.After(span.StartTime) {
		t.Errorf("span = %+v", span)
	}
	wantAttributes(t, attributes, map[string]string{
		"gcsup.bucket": "bkt", "gcsup.object": "some/object", "gcsup.upload.id": res.ID, "gcsup.outcome": "done",
		"gcsup.size": fmt.Sprint(size), "gcsup.generation": fmt.Sprint(res.Object.Generation), "gcsup.sent": fmt.Sprint(res.BytesSent),
		"gcsup.resent": fmt.Sprint(res.BytesResent), "gcsup.resumed": "false", "gcsup.requests": fmt.Sprint(res.Requests), "gcsup.retries": fmt.Sprint(res.Retries),
	})
	if res.BytesResent == 0 || res.Retries == 0 {
		t.Errorf("nothing failed: %+v", res)
	}
	if len(events["restarted"]) != 1 || len(events["waiting"]) != res.Retries || len(events["query"]) < 2 {
		t.Errorf("events %v, with %d retries", events, res.Retries)
	}
	wantAttributes(t, events["waiting"][0], map[string]string{"gcsup.wait.retry": "1", "gcsup.cause": "503", "gcsup.wait.duration": "0.001"})
	wantAttributes(t, events["query"][0], map[string]string{"http.response.status_code": "308", "gcsup.offset": fmt.Sprint(mib), "gcsup.next": "send"})
	wantAttributes(t, events["query"][1], map[string]string{"http.response.status_code": "404", "error.type": "404", "gcsup.next": "begin"})
	if !strings.Contains(events["restarted"][0]["gcsup.cause"], "404") {
		t.Errorf("restart: %v", events["restarted"])
	}

	m := s.metrics()
	for name, want := range map[string]point{
		"gcsup.upload.duration": {map[string]string{"gcsup.bucket": "bkt", "gcsup.outcome": "done"}, 1, res.Elapsed.Seconds()},
		"gcsup.upload.size":     {map[string]string{"gcsup.bucket": "bkt"}, 1, size},
		"gcsup.upload.active":   {map[string]string{"gcsup.bucket": "bkt"}, 0, 0},
		"gcsup.upload.sent":     {map[string]string{"gcsup.bucket": "bkt"}, float64(res.BytesSent), 0},
		"gcsup.upload.resent":   {map[string]string{"gcsup.bucket": "bkt"}, float64(res.BytesResent), 0},
		"gcsup.upload.restarts": {map[string]string{"gcsup.bucket": "bkt"}, 1, 0},
		"gcsup.wait.duration":   {map[string]string{"gcsup.bucket": "bkt"}, float64(res.Retries), float64(res.Retries) / 1000},
	} {
		if p := m[name]; len(p) != 1 || !maps.Equal(p[0].attributes, want.attributes) || p[0].value != want.value || p[0].sum < want.sum*0.999 || p[0].sum > want.sum*1.001 {
			t.Errorf("%s = %v, want %v", name, p, want)
		}
	}
	exchanges := map[string]float64{}
	for _, p := range m["gcsup.exchange.duration"] {
		a := p.attributes
		exchanges[a["gcsup.operation"]+" "+a["http.response.status_code"]+" "+a["error.type"]] += p.value
	}
	total := 0.0
	for _, n := range exchanges {
		total += n
	}
	if exchanges["put 503 503"] != 1 || exchanges["start 200 "] != 2 || exchanges["finalize 200 "] != 1 || total != float64(res.Requests) {
		t.Errorf("exchanges %v, want %d", exchanges, res.Requests)
	}
}

// TestOutcomes checks the span of uploads that end in other ways, and that each
// ends.
func TestOutcomes(t *testing.T) {
	onlyNew := spec
	onlyNew.IfGenerationMatch = new(int64)
	job := func(s *setting, skip upload.Skip) (*upload.Result, error) {
		for res, err := range s.up.Files(s.t.Context(), slices.Values([]upload.Job{{Path: s.path, Spec: spec}}), &upload.BatchOptions{Skip: skip, DryRun: skip == upload.SkipNothing}) {
			return res, err
		}
		return nil, errors.New("no result")
	}
	seed := func(s *setting) {
		up, err := upload.New(s.srv.Client(), &upload.Options{Endpoint: s.srv.URL})
		if err != nil {
			s.t.Fatal(err)
		}
		if _, err := up.Reader(s.t.Context(), strings.NewReader("x"), spec); err != nil {
			s.t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		name, outcome, errorType string
		status                   codes.Code
		faults                   []faults.Fault
		call                     func(s *setting) (*upload.Result, error)
	}{
		{"no such file", "failed", "no_input", codes.Error, nil, func(s *setting) (*upload.Result, error) {
			return s.up.File(s.t.Context(), "missing", spec)
		}},
		{"truncated", "failed", "truncated", codes.Error, nil, func(s *setting) (*upload.Result, error) {
			return withCall(s.up, upload.CallOptions{Size: new(int64(2))}).Reader(s.t.Context(), strings.NewReader("x"), spec)
		}},
		{"precondition", "failed", "precondition", codes.Error, nil, func(s *setting) (*upload.Result, error) {
			seed(s)
			return s.up.File(s.t.Context(), s.path, onlyNew)
		}},
		{"down", "failed", "retries_exhausted", codes.Error, []faults.Fault{{Times: -1, Do: status(503)}}, func(s *setting) (*upload.Result, error) {
			return s.up.File(s.t.Context(), s.path, spec)
		}},
		{"interrupted", "interrupted", "interrupted", codes.Error, []faults.Fault{{Do: faults.Action{Effect: faults.EffectStall}}}, func(s *setting) (*upload.Result, error) {
			ctx, cancel := context.WithCancel(s.t.Context())
			cancel()
			return s.up.File(ctx, s.path, spec)
		}},
		{"skipped", "skipped", "", codes.Unset, nil, func(s *setting) (*upload.Result, error) {
			seed(s)
			return job(s, upload.SkipExisting)
		}},
		{"planned", "planned", "", codes.Unset, nil, func(s *setting) (*upload.Result, error) { return job(s, upload.SkipNothing) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newSetting(t, tt.faults)
			_, err := tt.call(s)
			span, attributes, _ := s.span()
			if span.Status.Code != tt.status || (err != nil) != (tt.status == codes.Error) {
				t.Errorf("status %v, %v", span.Status, err)
			}
			wantAttributes(t, attributes, map[string]string{"gcsup.outcome": tt.outcome, "error.type": tt.errorType, "gcsup.bucket": "bkt"})
			m := s.metrics()
			if p := m["gcsup.upload.duration"]; len(p) != 1 || p[0].attributes["gcsup.outcome"] != tt.outcome || p[0].attributes["error.type"] != tt.errorType {
				t.Errorf("gcsup.upload.duration = %v", p)
			}
			if p := m["gcsup.upload.active"]; len(p) != 1 || p[0].value != 0 {
				t.Errorf("gcsup.upload.active = %v", p)
			}
		})
	}
}

// TestResumeAndCancel checks the spans of an upload that another call continues,
// and of one that is canceled.
func TestResumeAndCancel(t *testing.T) {
	down := faults.Fault{Match: faults.Match{Op: faults.OpPut}, Skip: 2, Times: -1, Do: status(503)}
	for _, cancel := range []bool{false, true} {
		s := newSetting(t, []faults.Fault{down})
		res, err := s.up.File(t.Context(), s.path, spec)
		if !errors.Is(err, session.ErrRetriesExhausted) {
			t.Fatal(err)
		}
		_, attributes, _ := s.span()
		wantAttributes(t, attributes, map[string]string{"gcsup.resumable": "true", "gcsup.outcome": "failed"})
		s.spans.Reset()
		s.srv.ClearFaults()
		if cancel {
			if err := s.up.Cancel(t.Context(), res.ID); err != nil {
				t.Fatal(err)
			}
			_, attributes, _ := s.span()
			wantAttributes(t, attributes, map[string]string{"gcsup.outcome": "canceled", "gcsup.upload.id": res.ID})
			continue
		}
		if _, err := s.up.Resume(t.Context(), res.ID); err != nil {
			t.Fatal(err)
		}
		_, attributes, events := s.span()
		wantAttributes(t, attributes, map[string]string{"gcsup.resumed": "true", "gcsup.resumed_from": fmt.Sprint(2 * mib), "gcsup.outcome": "done"})
		if len(events["resumed"]) != 1 || events["resumed"][0]["gcsup.offset"] != fmt.Sprint(2*mib) {
			t.Errorf("events %v", events)
		}
	}
}

// TestInspection checks that questions about saved uploads have metrics and no span,
// because they have no terminal event.
func TestInspection(t *testing.T) {
	s := newSetting(t, []faults.Fault{{Match: faults.Match{Op: faults.OpPut}, Skip: 2, Times: -1, Do: status(503)}})
	res, err := s.up.File(t.Context(), s.path, spec)
	if !errors.Is(err, session.ErrRetriesExhausted) {
		t.Fatal(err)
	}
	s.spans.Reset()
	if _, err := s.up.Query(t.Context(), res.ID); err != nil {
		t.Fatal(err)
	}
	for _, err := range s.up.Prune(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
	}
	m := s.metrics()
	if p := m["gcsup.upload.active"]; len(p) != 1 || p[0].value != 0 {
		t.Errorf("gcsup.upload.active = %v", p)
	}
	queries := 0.0
	for _, p := range m["gcsup.exchange.duration"] {
		if p.attributes["gcsup.operation"] == "query" && p.attributes["error.type"] == "" {
			queries += p.value
		}
	}
	if n := len(s.spans.GetSpans()); n != 0 || queries < 2 {
		t.Errorf("%d spans, and %v queries, want 0 and at least 2", n, queries)
	}
}

// TestListing checks that a listing has metrics and no span.
func TestListing(t *testing.T) {
	s := newSetting(t, nil)
	for _, err := range s.up.Lookup(t.Context(), upload.Listing{Bucket: "bkt"}, slices.Values([]upload.Job{{Spec: spec}})) {
		if err != nil {
			t.Fatal(err)
		}
	}
	if n := len(s.spans.GetSpans()); n != 0 {
		t.Errorf("%d spans", n)
	}
	if p := s.metrics()["gcsup.exchange.duration"]; len(p) != 1 || p[0].attributes["gcsup.operation"] != "list" {
		t.Errorf("gcsup.exchange.duration = %v", p)
	}
}

// TestOmitObject checks that the name of the object can be left out.
func TestOmitObject(t *testing.T) {
	spans := tracetest.NewInMemoryExporter()
	telemetry, err := otel.New(&otel.Options{TracerProvider: trace.NewTracerProvider(trace.WithSyncer(spans)), OmitObject: true})
	if err != nil {
		t.Fatal(err)
	}
	s := newSetting(t, nil, func(o *upload.Options) { o.Observer, o.Exchange = telemetry.Observe, telemetry.Exchange })
	if _, err := s.up.File(t.Context(), s.path, spec); err != nil {
		t.Fatal(err)
	}
	if text := fmt.Sprintf("%+v", spans.GetSpans()); len(spans.GetSpans()) != 1 || strings.Contains(text, spec.Object) {
		t.Errorf("spans %s", text)
	}
}

// TestOpenTelemetrySeesNoSecret checks that no span of an upload or of a request,
// and no metric, has the secret of a session, whatever fails. Without Transport,
// otelhttp exports it.
func TestOpenTelemetrySeesNoSecret(t *testing.T) {
	for _, redacted := range []bool{false, true} {
		s := newSetting(t, []faults.Fault{
			{Match: faults.Match{Op: faults.OpPut}, Do: faults.Action{Effect: faults.EffectReset}},
			{Match: faults.Match{Op: faults.OpQuery}, Do: faults.Action{Effect: faults.EffectClose}},
			{Match: faults.Match{Op: faults.OpPut}, Skip: 2, Do: status(503)},
			{Match: faults.Match{Op: faults.OpPut}, Skip: 3, Do: faults.Action{Effect: faults.EffectNotFound}},
			{Match: faults.Match{Op: faults.OpFinalize}, Times: -1, Do: status(403)},
		})
		var mu sync.Mutex
		secrets := map[string]bool{}
		base := roundTrip(func(r *http.Request) (*http.Response, error) {
			mu.Lock()
			defer mu.Unlock()
			if id := r.URL.Query().Get("upload_id"); id != "" {
				secrets[id] = true
			}
			return http.DefaultTransport.RoundTrip(r)
		})
		transport := otelhttpTransport(base, s.traces)
		if redacted {
			transport = otel.Transport(base, withTracer(s.traces))
		}
		telemetry, err := otel.New(&otel.Options{TracerProvider: s.traces, MeterProvider: sdkmetric.NewMeterProvider(sdkmetric.WithReader(s.reader))})
		if err != nil {
			t.Fatal(err)
		}
		up, err := upload.New(&http.Client{Transport: transport}, &upload.Options{
			Endpoint: s.srv.URL, Store: s.store, Policy: hasty, ChunkSize: mib, Observer: telemetry.Observe, Exchange: telemetry.Exchange,
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := up.File(t.Context(), s.path, spec); !errors.Is(err, session.ErrPermission) {
			t.Fatal(err)
		}
		exported := fmt.Sprintf("%+v\n%+v", s.spans.GetSpans(), s.metrics())
		if !strings.Contains(exported, "gcsup.upload") || !strings.Contains(exported, "url.full") || len(secrets) != 2 || secrets["redacted"] {
			t.Fatalf("%d sessions, exported:\n%s", len(secrets), exported)
		}
		for secret := range secrets {
			if strings.Contains(exported, secret) == redacted {
				t.Errorf("redacted = %v, session %s, exported:\n%s", redacted, secret, exported)
			}
		}
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestDocumentation checks that the package documentation has all metrics and
// attributes, and no others.
func TestDocumentation(t *testing.T) {
	text, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		if row, ok := strings.CutPrefix(line, "//\tgcsup."); ok {
			documented["gcsup."+strings.Fields(row)[0]] = true
		}
	}
	s := newSetting(t, []faults.Fault{
		{Match: faults.Match{Op: faults.OpPut}, Skip: 1, Do: status(503)},
		{Match: faults.Match{Op: faults.OpPut}, Skip: 2, Do: faults.Action{Effect: faults.EffectNotFound}},
		{Match: faults.Match{Op: faults.OpFinalize}, Do: status(403)},
	})
	if _, err := s.up.File(t.Context(), s.path, spec); err == nil {
		t.Fatal("the upload did not fail")
	}
	if _, err := s.up.File(t.Context(), s.path, spec); err != nil {
		t.Fatal(err)
	}
	exported := map[string]bool{}
	for name, points := range s.metrics() {
		exported[name] = true
		for _, p := range points {
			for key := range p.attributes {
				if !strings.Contains(string(text), key) {
					t.Errorf("%s has %s, which is not documented", name, key)
				}
			}
		}
	}
	for _, span := range s.spans.GetSpans() {
		for key := range texts(span.Attributes) {
			if strings.HasPrefix(key, "gcsup.") {
				exported[key] = true
			}
		}
		for _, e := range span.Events {
			for key := range texts(e.Attributes) {
				if !strings.Contains(string(text), key) {
					t.Errorf("%s has %s, which is not documented", e.Name, key)
				}
			}
		}
	}
	if !maps.Equal(documented, exported) {
		t.Errorf("documented\n%v\nexported\n%v", slices.Sorted(maps.Keys(documented)), slices.Sorted(maps.Keys(exported)))
	}
}

// withCall returns up.With(o), whose options must be valid.
func withCall(up *upload.Uploader, o upload.CallOptions) *upload.Uploader {
	own, err := up.With(o)
	if err != nil {
		panic(err)
	}
	return own
}
