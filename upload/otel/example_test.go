package otel_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"strings"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"gcsup/backoff"
	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/upload"
	"gcsup/upload/otel"
)

// The trace and the metrics of one upload, of which one request fails.
func Example() {
	emulator := fakegcs.NewServer(nil, &fakegcs.Options{CreateBuckets: true, Faults: []faults.Fault{
		{Match: faults.Match{Op: faults.OpPut}, Do: faults.Action{Effect: faults.EffectStatus, Status: 503}},
	}})
	defer emulator.Close()

	// A program exports to a collector instead.
	spans, reader := tracetest.NewInMemoryExporter(), sdkmetric.NewManualReader()
	telemetry, err := otel.New(&otel.Options{
		TracerProvider: trace.NewTracerProvider(trace.WithSyncer(spans)),
		MeterProvider:  sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)),
	})
	if err != nil {
		log.Fatal(err)
	}
	up, err := upload.New(&http.Client{Transport: otel.Transport(nil)}, &upload.Options{
		Endpoint:  emulator.URL,
		ChunkSize: 1 << 20,
		Policy:    backoff.Policy{Initial: time.Millisecond, Maximum: time.Millisecond}, // so that the example is fast
		Observer:  telemetry.Observe,
		Exchange:  telemetry.Exchange,
	})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	spec := upload.Spec{Bucket: "my-bucket", Object: "stream"}
	if _, err := up.Reader(ctx, strings.NewReader(strings.Repeat("x", 3<<20)), spec); err != nil {
		log.Fatal(err)
	}

	for _, span := range spans.GetSpans() {
		fmt.Println(span.Name)
		for _, event := range span.Events {
			fmt.Println("-", event.Name)
		}
	}
	var metrics metricdata.ResourceMetrics
	if err := reader.Collect(ctx, &metrics); err != nil {
		log.Fatal(err)
	}
	for _, metric := range metrics.ScopeMetrics[0].Metrics {
		if sizes, ok := metric.Data.(metricdata.Histogram[int64]); ok {
			fmt.Println(metric.Name, sizes.DataPoints[0].Sum)
		}
	}
	// Output:
	// gcsup.upload
	// - waiting
	// - query
	// gcsup.upload.size 3145728
}
