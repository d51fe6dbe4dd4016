package otel

import (
	"errors"

	"go.opentelemetry.io/otel/metric"
)

// metrics are the instruments.
type metrics struct {
	durations metric.Float64Histogram
	sizes     metric.Int64Histogram
	active    metric.Int64UpDownCounter
	sent      metric.Int64Counter
	resent    metric.Int64Counter
	restarts  metric.Int64Counter
	waits     metric.Float64Histogram
	exchanges metric.Float64Histogram
}

// The bounds of the histograms. An upload takes milliseconds or hours, and a wait
// at most a minute.
var (
	uploadSeconds   = metric.WithExplicitBucketBoundaries(0.01, 0.1, 0.5, 1, 5, 15, 60, 300, 900, 3600, 4*3600, 24*3600)
	exchangeSeconds = metric.WithExplicitBucketBoundaries(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)
	waitSeconds     = metric.WithExplicitBucketBoundaries(0.5, 1, 2, 4, 8, 16, 32, 60)
	objectBytes     = metric.WithExplicitBucketBoundaries(1<<10, 64<<10, 1<<20, 8<<20, 64<<20, 1<<30, 16<<30, 256<<30, 5<<40)
)

func newMetrics(m metric.Meter) (*metrics, error) {
	var v metrics
	errs := make([]error, 8)
	v.durations, errs[0] = m.Float64Histogram("gcsup.upload.duration", metric.WithUnit("s"), uploadSeconds,
		metric.WithDescription("Time of each upload."))
	v.sizes, errs[1] = m.Int64Histogram("gcsup.upload.size", metric.WithUnit("By"), objectBytes,
		metric.WithDescription("Size of each object that was made."))
	v.active, errs[2] = m.Int64UpDownCounter("gcsup.upload.active", metric.WithUnit("{upload}"),
		metric.WithDescription("Uploads under way."))
	v.sent, errs[3] = m.Int64Counter("gcsup.upload.sent", metric.WithUnit("By"),
		metric.WithDescription("Bytes of object data that were sent, repeats included."))
	v.resent, errs[4] = m.Int64Counter("gcsup.upload.resent", metric.WithUnit("By"),
		metric.WithDescription("Bytes of object data that were sent again."))
	v.restarts, errs[5] = m.Int64Counter("gcsup.upload.restarts", metric.WithUnit("{restart}"),
		metric.WithDescription("Sessions that were lost and replaced."))
	v.waits, errs[6] = m.Float64Histogram("gcsup.wait.duration", metric.WithUnit("s"), waitSeconds,
		metric.WithDescription("Each wait before a retry."))
	v.exchanges, errs[7] = m.Float64Histogram("gcsup.exchange.duration", metric.WithUnit("s"), exchangeSeconds,
		metric.WithDescription("Time of each request until its reply was read."))
	return &v, errors.Join(errs...)
}
