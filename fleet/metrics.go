package fleet

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Handler returns a handler that serves the metrics of the worker for Prometheus at /metrics, and
// its health at /healthz: status 200 while it is connected to NATS, otherwise 503.
func (w *Worker) Handler() http.Handler {
	registry := prometheus.NewRegistry()
	counter := func(name, help string, value func() int64) {
		registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Namespace: "gcsup_fleet", Name: name, Help: help,
		}, func() float64 { return float64(value()) }))
	}
	gauge := func(name, help string, value func() float64) {
		registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Namespace: "gcsup_fleet", Name: name, Help: help,
		}, value))
	}
	counter("files_total", "Files whose objects this worker made, or found to be right.", w.totals.files.Load)
	counter("file_bytes_total", "Bytes of these files.", w.totals.bytes.Load)
	counter("sent_bytes_total", "Object bytes that were handed to the network.", w.totals.sent.Load)
	counter("failed_files_total", "Files that became dead letters.", w.totals.letters.Load)
	counter("failed_deliveries_total", "Deliveries that failed and count.", w.totals.failures.Load)
	gauge("active_tasks", "Tasks that this worker has.", func() float64 {
		w.mu.Lock()
		defer w.mu.Unlock()
		return float64(len(w.active))
	})
	gauge("held", "1 while the service has trouble and other workers try it, otherwise 0.", func() float64 {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.gated {
			return 1
		}
		return 0
	})
	gauge("unfit", "1 while this worker takes no tasks because all its last ones failed for a reason of its own, otherwise 0.", func() float64 {
		if w.unfit() != nil {
			return 1
		}
		return 0
	})
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(rw http.ResponseWriter, _ *http.Request) {
		if !w.q.js.Conn().IsConnected() {
			http.Error(rw, "NATS cannot be reached", http.StatusServiceUnavailable)
			return
		}
		_, _ = rw.Write([]byte("ok\n"))
	})
	return mux
}
