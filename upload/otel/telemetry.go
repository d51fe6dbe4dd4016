package otel

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"gcsup/session"
	"gcsup/upload"
)

// scope is the name of the instrumentation.
const scope = "gcsup/upload/otel"

// Options configure a [Telemetry]. The zero value uses the global providers.
type Options struct {
	TracerProvider trace.TracerProvider
	MeterProvider  metric.MeterProvider

	// OmitObject omits the names of objects from the spans.
	OmitObject bool
}

// Telemetry exports uploads. It is safe for concurrent use by any number of
// uploaders.
type Telemetry struct {
	tracer  trace.Tracer
	metrics *metrics
	omit    bool

	mu    sync.Mutex
	spans map[int64]running // of the uploads under way, by their number
}

// running is an upload under way.
type running struct {
	trace.Span
	bucket attribute.KeyValue // the attribute with which it was added to the active uploads
}

// New returns a Telemetry. A nil opts uses the global providers.
func New(opts *Options) (*Telemetry, error) {
	if opts == nil {
		opts = &Options{}
	}
	tracers, meters := opts.TracerProvider, opts.MeterProvider
	if tracers == nil {
		tracers = otel.GetTracerProvider()
	}
	if meters == nil {
		meters = otel.GetMeterProvider()
	}
	m, err := newMetrics(meters.Meter(scope))
	if err != nil {
		return nil, err
	}
	return &Telemetry{tracer: tracers.Tracer(scope), metrics: m, omit: opts.OmitObject, spans: map[int64]running{}}, nil
}

// Observe exports an event of an upload. It is for [upload.Options].Observer.
func (t *Telemetry) Observe(e upload.Event) {
	ctx := recording(e.Context())
	bucket := attribute.String(bucketKey, e.Spec.Bucket)
	if e.SentDelta > 0 {
		t.metrics.sent.Add(ctx, e.SentDelta, metric.WithAttributes(bucket))
	}
	switch e.Kind {
	case upload.Waiting:
		t.metrics.waits.Record(ctx, e.Delay.Seconds(), metric.WithAttributes(bucket))
	case upload.Restarted:
		t.metrics.restarts.Add(ctx, 1, metric.WithAttributes(bucket))
	}
	if e.Upload == 0 {
		return // a listing or an inspection, which has no span
	}
	began := e.Time
	if e.Kind.Terminal() {
		began = began.Add(-e.Result.Elapsed) // unless the span has begun
	}
	span := t.span(ctx, e.Upload, e.Spec, began)
	cause := attribute.String("gcsup.cause", e.Cause)
	note := func(attributes ...attribute.KeyValue) {
		span.AddEvent(e.Kind.String(), trace.WithTimestamp(e.Time), trace.WithAttributes(attributes...))
	}
	switch e.Kind {
	case upload.Waiting:
		note(attribute.Float64("gcsup.wait.duration", e.Delay.Seconds()), attribute.Int("gcsup.wait.retry", e.Retry), cause)
	case upload.LeaseHeld:
		note(attribute.Float64("gcsup.wait.duration", e.Delay.Seconds()), cause)
	case upload.Restarted, upload.Discarded, upload.Divided, upload.Warning, upload.InputWaits:
		note(cause)
	case upload.InputContinues:
		note()
	case upload.Resumed:
		note(attribute.Int64(offsetKey, e.Committed))
	case upload.Done, upload.Interrupted, upload.Failed:
		t.end(ctx, e, span)
	}
}

// Exchange exports a request and its reply. It is for [upload.Options].Exchange.
func (t *Telemetry) Exchange(x upload.Exchange) {
	ctx := recording(x.Context())
	bucket := attribute.String(bucketKey, x.Spec.Bucket)
	reply := replyOf(x)
	t.metrics.exchanges.Record(ctx, x.Duration.Seconds(), metric.WithAttributes(append(reply, bucket, attribute.String("gcsup.operation", string(x.Op)))...))
	if x.Upload == 0 {
		return // a listing or an inspection, which has no span
	}
	span := t.span(ctx, x.Upload, x.Spec, x.Time)
	if x.Op != session.OpQuery {
		return
	}
	if x.Committed >= 0 {
		reply = append(reply, attribute.Int64(offsetKey, x.Committed))
	}
	if x.Next != nil {
		reply = append(reply, attribute.String("gcsup.next", string(x.Next.Step)))
	}
	span.AddEvent("query", trace.WithTimestamp(x.Time.Add(x.Duration)), trace.WithAttributes(reply...))
}

// span returns the span of an upload. If there is none yet, it begins one at the time
// began.
func (t *Telemetry) span(ctx context.Context, number int64, spec upload.Spec, began time.Time) running {
	t.mu.Lock()
	defer t.mu.Unlock()
	r, ok := t.spans[number]
	if !ok {
		r.bucket = attribute.String(bucketKey, spec.Bucket)
		_, r.Span = t.tracer.Start(ctx, "gcsup.upload", trace.WithTimestamp(began), trace.WithAttributes(r.bucket))
		t.metrics.active.Add(ctx, 1, metric.WithAttributes(r.bucket))
		t.spans[number] = r
	}
	return r
}

// end ends the span of an upload, and records its result.
func (t *Telemetry) end(ctx context.Context, e upload.Event, span running) {
	t.mu.Lock()
	delete(t.spans, e.Upload)
	t.mu.Unlock()
	bucket, outcome := span.bucket, attribute.String("gcsup.outcome", outcomeOf(e))
	r := e.Result
	measured := []attribute.KeyValue{bucket, outcome}
	attributes := []attribute.KeyValue{
		outcome,
		attribute.Int64("gcsup.sent", r.BytesSent), attribute.Int64("gcsup.resent", r.BytesResent),
		attribute.Bool("gcsup.resumed", r.Resumed),
		attribute.Int("gcsup.requests", r.Requests), attribute.Int("gcsup.retries", r.Retries),
	}
	if !t.omit {
		attributes = append(attributes, attribute.String("gcsup.object", e.Spec.Object))
	}
	if e.ID != "" {
		attributes = append(attributes, attribute.String("gcsup.upload.id", e.ID))
	}
	if r.Size >= 0 {
		attributes = append(attributes, attribute.Int64("gcsup.size", r.Size))
	}
	if r.Object != nil {
		attributes = append(attributes, attribute.Int64("gcsup.generation", r.Object.Generation))
	}
	if r.Resumed {
		attributes = append(attributes, attribute.Int64("gcsup.resumed_from", r.ResumedFrom))
	}
	if e.Err != nil {
		why := attribute.String(errorTypeKey, upload.ErrorKind(e.Err))
		measured = append(measured, why)
		attributes = append(attributes, why, attribute.Bool("gcsup.resumable", r.Resumable))
		span.SetStatus(codes.Error, e.Err.Error())
	}
	span.SetAttributes(attributes...)
	span.End(trace.WithTimestamp(e.Time))

	t.metrics.active.Add(ctx, -1, metric.WithAttributes(bucket))
	t.metrics.durations.Record(ctx, r.Elapsed.Seconds(), metric.WithAttributes(measured...))
	if r.BytesResent > 0 {
		t.metrics.resent.Add(ctx, r.BytesResent, metric.WithAttributes(bucket))
	}
	if outcomeOf(e) == "done" {
		t.metrics.sizes.Record(ctx, r.Object.Size, metric.WithAttributes(bucket))
	}
}

// outcomeOf returns the outcome of an upload from its terminal event.
func outcomeOf(e upload.Event) string {
	switch r := e.Result; {
	case e.Kind != upload.Done:
		return e.Kind.String()
	case r.Skipped != upload.SkipNothing:
		return "skipped"
	case r.Planned:
		return "planned"
	case r.Object == nil:
		return "canceled"
	}
	return "done"
}

// recording returns a context that does not end with ctx, so that the records of a
// canceled upload are not dropped.
func recording(ctx context.Context) context.Context { return context.WithoutCancel(ctx) }

// The keys of attributes that are used more than once.
const (
	bucketKey    = "gcsup.bucket"
	offsetKey    = "gcsup.offset"
	errorTypeKey = "error.type"
)

// replyOf returns the attributes of a reply.
func replyOf(x upload.Exchange) []attribute.KeyValue {
	var attributes []attribute.KeyValue
	if x.Status != 0 {
		attributes = append(attributes, attribute.Int("http.response.status_code", x.Status))
	}
	switch {
	case errors.Is(x.Err, session.ErrStalled):
		attributes = append(attributes, attribute.String(errorTypeKey, upload.ErrorKind(session.ErrStalled)))
	case x.Status == 0:
		attributes = append(attributes, attribute.String(errorTypeKey, "transport"))
	case x.Status >= 400:
		attributes = append(attributes, attribute.String(errorTypeKey, strconv.Itoa(x.Status)))
	}
	return attributes
}
