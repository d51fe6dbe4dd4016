package main

import (
	"github.com/prometheus/client_golang/prometheus"

	"gcsup/fleet/internal/fleet"
)

// workerCollector collects the metrics of a worker. All values of a scrape are those of one call.
type workerCollector func() fleet.WorkerMetrics

// workerMetrics are the metrics of a worker besides those of its uploads.
var workerMetrics = []struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(m fleet.WorkerMetrics) float64
}{
	{workerDesc("files_total", "Files whose objects this worker made, or found to be right."), prometheus.CounterValue, func(m fleet.WorkerMetrics) float64 { return float64(m.Files) }},
	{workerDesc("file_bytes_total", "Bytes of these files."), prometheus.CounterValue, func(m fleet.WorkerMetrics) float64 { return float64(m.Bytes) }},
	{workerDesc("sent_bytes_total", "Object bytes that were handed to the network."), prometheus.CounterValue, func(m fleet.WorkerMetrics) float64 { return float64(m.Sent) }},
	{workerDesc("failed_files_total", "Files that became dead letters."), prometheus.CounterValue, func(m fleet.WorkerMetrics) float64 { return float64(m.DeadLetters) }},
	{workerDesc("failed_deliveries_total", "Failed deliveries that count for --max-failures."), prometheus.CounterValue, func(m fleet.WorkerMetrics) float64 { return float64(m.FailedDeliveries) }},
	{workerDesc("queued_tasks", "Tasks in the queue of the fleet, including those that workers have."), prometheus.GaugeValue, func(m fleet.WorkerMetrics) float64 { return float64(m.QueuedTasks) }},
	{workerDesc("dead_letters", "Dead letters of the fleet."), prometheus.GaugeValue, func(m fleet.WorkerMetrics) float64 { return float64(m.Letters) }},
	{workerDesc("active_tasks", "Tasks that this worker has."), prometheus.GaugeValue, func(m fleet.WorkerMetrics) float64 { return float64(m.ActiveTasks) }},
}

func workerDesc(name, help string) *prometheus.Desc {
	return prometheus.NewDesc(prometheus.BuildFQName("gcsup_fleet", "", name), help, nil, nil)
}

// Describe implements [prometheus.Collector].
func (c workerCollector) Describe(to chan<- *prometheus.Desc) {
	for _, m := range workerMetrics {
		to <- m.desc
	}
}

// Collect implements [prometheus.Collector].
func (c workerCollector) Collect(to chan<- prometheus.Metric) {
	now := c()
	for _, m := range workerMetrics {
		to <- prometheus.MustNewConstMetric(m.desc, m.kind, m.value(now))
	}
}
