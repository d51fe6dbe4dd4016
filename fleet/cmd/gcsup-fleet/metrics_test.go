package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"gcsup/fleet/internal/fleet"
	"gcsup/internal/cli/metrics"
	"gcsup/internal/require"
)

// TestReadmeMetrics compares the table of metrics in README.md with those that a worker serves.
func TestReadmeMetrics(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	require.NoError(t, err)
	var listed, served []string
	for _, m := range regexp.MustCompile("(?m)^\\| `(gcsup_fleet_\\w+)` \\| (.*) \\|$").FindAllStringSubmatch(string(page), -1) {
		listed = append(listed, m[1]+" "+m[2])
	}
	values := fleet.WorkerMetrics{Files: 1, Bytes: 2, Sent: 3, DeadLetters: 4, FailedDeliveries: 5, ActiveTasks: 6, QueuedTasks: 7, Letters: 8}
	all := metrics.New(metrics.Options{Collectors: []prometheus.Collector{workerCollector(func() fleet.WorkerMetrics { return values })}})
	recorder := httptest.NewRecorder()
	all.Handler().ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	body := recorder.Body.String()
	for _, m := range regexp.MustCompile(`(?m)^# HELP (gcsup_fleet_\S+) (.*)$`).FindAllStringSubmatch(body, -1) {
		served = append(served, m[1]+" "+m[2])
	}
	slices.Sort(listed)
	slices.Sort(served)
	if !slices.Equal(listed, served) || len(served) == 0 {
		t.Errorf("README.md has the metrics\n%s\nand a worker serves\n%s", strings.Join(listed, "\n"), strings.Join(served, "\n"))
	}
	for _, series := range []string{"files_total 1", "file_bytes_total 2", "sent_bytes_total 3", "failed_files_total 4", "failed_deliveries_total 5", "active_tasks 6", "queued_tasks 7", "dead_letters 8"} {
		if !strings.Contains(body, "\ngcsup_fleet_"+series+"\n") {
			t.Errorf("no series gcsup_fleet_%s:\n%s", series, body)
		}
	}
}
