package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Backlog describes the files that wait to be uploaded, those under way included.
type Backlog struct {
	Files, Bytes int64
	Oldest       time.Time // since when the oldest of them waits; ignored if there are no files
}

// backlogCollector collects a backlog. All values of a scrape are those of one call.
type backlogCollector func() Backlog

var (
	backlogFiles  = prometheus.NewDesc(prometheus.BuildFQName(namespace, "backlog", "files"), "Files that wait to be uploaded, those under way included.", nil, nil)
	backlogBytes  = prometheus.NewDesc(prometheus.BuildFQName(namespace, "backlog", "bytes"), "Bytes of these files.", nil, nil)
	backlogOldest = prometheus.NewDesc(prometheus.BuildFQName(namespace, "backlog", "oldest_age_seconds"), "How long the oldest of these files has waited; 0 if there are none.", nil, nil)
)

// Describe implements [prometheus.Collector].
func (b backlogCollector) Describe(to chan<- *prometheus.Desc) {
	to <- backlogFiles
	to <- backlogBytes
	to <- backlogOldest
}

// Collect implements [prometheus.Collector].
func (b backlogCollector) Collect(to chan<- prometheus.Metric) {
	now, age := b(), time.Duration(0)
	if now.Files > 0 {
		age = max(time.Since(now.Oldest), 0) // a clock may have been set back
	}
	to <- prometheus.MustNewConstMetric(backlogFiles, prometheus.GaugeValue, float64(now.Files))
	to <- prometheus.MustNewConstMetric(backlogBytes, prometheus.GaugeValue, float64(now.Bytes))
	to <- prometheus.MustNewConstMetric(backlogOldest, prometheus.GaugeValue, age.Seconds())
}
