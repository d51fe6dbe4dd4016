package metrics

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"gcsup/upload"
)

// active has the uploads under way. It collects their number and sums, and no series for each of them.
type active struct {
	mu      sync.Mutex
	uploads map[int64]progress // by number
}

// progress is how far an upload is.
type progress struct{ size, committed int64 }

// note records an event of an upload that continues.
func (a *active) note(e upload.Event) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.uploads[e.Upload] = progress{size: max(e.Size, 0), committed: e.Committed}
}

// end removes an upload.
func (a *active) end(number int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.uploads, number)
}

var (
	activeUploads   = prometheus.NewDesc(prometheus.BuildFQName(namespace, "active", "uploads"), "Uploads under way.", nil, nil)
	activeSize      = prometheus.NewDesc(prometheus.BuildFQName(namespace, "active", "size_bytes"), "Sizes of the objects of the uploads under way, all together, as far as they are known.", nil, nil)
	activeCommitted = prometheus.NewDesc(prometheus.BuildFQName(namespace, "active", "committed_bytes"), "Committed offsets of the uploads under way, all together.", nil, nil)
)

// Describe implements [prometheus.Collector].
func (a *active) Describe(to chan<- *prometheus.Desc) {
	to <- activeUploads
	to <- activeSize
	to <- activeCommitted
}

// Collect implements [prometheus.Collector].
func (a *active) Collect(to chan<- prometheus.Metric) {
	a.mu.Lock()
	n, sum := len(a.uploads), progress{}
	for _, p := range a.uploads {
		sum.size += p.size
		sum.committed += p.committed
	}
	a.mu.Unlock()
	to <- prometheus.MustNewConstMetric(activeUploads, prometheus.GaugeValue, float64(n))
	to <- prometheus.MustNewConstMetric(activeSize, prometheus.GaugeValue, float64(sum.size))
	to <- prometheus.MustNewConstMetric(activeCommitted, prometheus.GaugeValue, float64(sum.committed))
}
