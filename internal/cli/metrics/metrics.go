// Package metrics serves the metrics and the health of a command that uploads: /metrics for Prometheus,
// and /healthz.
//
// No label has the name of an object, a file or a bucket. A series for each would stay in Prometheus
// when its upload has ended, and names can be confidential. The values of all labels are known when the
// command starts, and their series are there from then on, with the value 0. docs/reference/metrics.md has a
// table of the metrics.
package metrics

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"gcsup/internal/errkind"
	"gcsup/upload"
)

// Options configure Metrics. The zero value is that of a command without a backlog.
type Options struct {
	// Version is the version of the program. If it is "", it is not served.
	Version string

	// Backlog, if not nil, returns what waits to be uploaded. It is called for each scrape.
	Backlog func() Backlog

	// Healthy, if not nil, returns what is wrong apart from the uploads, or nil. It is called for each request
	// of /healthz, which shows the text of the error. The text must have no secrets.
	Healthy func() error

	// Collectors have the metrics of a command besides those of its uploads.
	Collectors []prometheus.Collector
}

// Metrics counts uploads by their events. It is safe for concurrent use.
type Metrics struct {
	handler http.Handler

	sent, resent, fileBytes prometheus.Counter
	retries, restarts       prometheus.Counter
	files, failures         *prometheus.CounterVec
	waits, waitSeconds      *prometheus.CounterVec
	active                  *active
	trouble                 *trouble
}

// New returns Metrics without any upload.
func New(o Options) *Metrics {
	registry := prometheus.NewRegistry()
	counter := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help})
		registry.MustRegister(c)
		return c
	}
	counters := func(name, help, label string, values []string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, []string{label})
		for _, v := range values {
			c.WithLabelValues(v)
		}
		registry.MustRegister(c)
		return c
	}
	m := &Metrics{
		sent:        counter("sent_bytes_total", "Bytes of objects that were handed to the network, repeats included."),
		resent:      counter("resent_bytes_total", "Bytes of objects that were handed to the network again. They are added when the upload ends."),
		files:       counters("files_total", "Uploads that ended, by outcome. A file that is tried again counts again.", "outcome", outcomes),
		fileBytes:   counter("file_bytes_total", "Bytes of the sources of uploads with the outcome done."),
		failures:    counters("failures_total", "Uploads with the outcome failed, by the kind of the error.", "kind", errkind.Kinds()),
		retries:     counter("retries_total", "Requests that failed and are repeated, or replaced by a query."),
		restarts:    counter("restarts_total", "Sessions that were lost and replaced."),
		waits:       counters("waits_total", "Waits, by reason.", "reason", reasons),
		waitSeconds: counters("wait_seconds_total", "Seconds of these waits. They are added when the wait begins; with reason=\"rate\", when the upload ends.", "reason", reasons),
		active:      &active{uploads: map[int64]progress{}},
		trouble:     new(trouble),
	}
	registry.MustRegister(m.active, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	if o.Backlog != nil {
		registry.MustRegister(backlogCollector(o.Backlog))
	}
	if o.Version != "" {
		info := prometheus.NewGauge(prometheus.GaugeOpts{
			Namespace: namespace, Name: "build_info", Help: "1, with the version of the program.",
			ConstLabels: prometheus.Labels{"version": o.Version},
		})
		info.Set(1)
		registry.MustRegister(info)
	}
	registry.MustRegister(o.Collectors...)
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		err := m.trouble.lasting(time.Now())
		if err == nil && o.Healthy != nil {
			err = o.Healthy()
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte("ok\n"))
	})
	m.handler = mux
	return m
}

// namespace is the prefix of the names.
const namespace = "gcsup"

// outcomes are those of uploads, as in package upload/otel.
var outcomes = []string{"done", "skipped", "planned", "canceled", "interrupted", "failed"}

// The reasons of waits.
const (
	afterFailure = "failure"         // a request failed
	forBreaker   = "circuit_breaker" // another upload probes the service
	forState     = "state"           // the store of the saved uploads failed
	forLease     = "lease"           // another process has the saved upload
	forRate      = "rate"            // the request rate of a bucket
)

var reasons = []string{afterFailure, forBreaker, forState, forLease, forRate}

// Handler returns the handler of /metrics and /healthz.
func (m *Metrics) Handler() http.Handler { return m.handler }

// Observe counts an event. It is for [upload.Options].Observer, of any number of uploaders.
func (m *Metrics) Observe(e upload.Event) {
	m.sent.Add(float64(e.SentDelta))
	m.trouble.observe(e)
	switch {
	case e.Kind == upload.Restarted:
		m.restarts.Inc()
	case e.Kind == upload.LeaseHeld:
		m.wait(forLease, e.Delay)
	case e.Kind == upload.Waiting && e.Store:
		m.wait(forState, e.Delay)
	case e.Kind == upload.Waiting && e.Blocked:
		m.wait(forBreaker, e.Delay)
	case e.Kind == upload.Waiting:
		m.wait(afterFailure, e.Delay)
		m.retries.Inc()
	}
	if e.Upload == 0 {
		return // a listing, or a request about the saved uploads
	}
	if !e.Kind.Terminal() {
		m.active.note(e)
		return
	}
	m.active.end(e.Upload)
	outcome := outcomeOf(e)
	m.files.WithLabelValues(outcome).Inc()
	m.resent.Add(float64(e.Result.BytesResent))
	if e.Result.Throttled > 0 {
		m.wait(forRate, e.Result.Throttled)
	}
	switch outcome {
	case "done":
		m.fileBytes.Add(float64(max(e.Result.Size, 0)))
	case "failed":
		m.failures.WithLabelValues(errkind.Of(e.Err)).Inc()
	}
}

// wait counts a wait.
func (m *Metrics) wait(reason string, length time.Duration) {
	m.waits.WithLabelValues(reason).Inc()
	m.waitSeconds.WithLabelValues(reason).Add(length.Seconds())
}

// outcomeOf returns the outcome of an upload from its last event.
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
