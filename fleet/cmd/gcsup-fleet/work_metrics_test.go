//go:build unix

package main

import (
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"gcsup/fakegcs"
	"gcsup/internal/require"
	"gcsup/internal/testprocess"
)

// TestWorkMetrics scrapes a worker that has uploaded a large file and a group of small ones.
func TestWorkMetrics(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fakegcs.Options{})
	w.write("large", 9<<20)
	w.write("small-1", 1000)
	w.write("small-2", 1000)
	w.output("submit", "-r", w.tree+"/.", "gs://my-bucket/tree/")
	cmd := w.command("work", "--state=gs://state-bucket/uploads", "--state-unsealed", "--listen=127.0.0.1:0")
	cmd.Stderr = nil
	worker := testprocess.Start(t, cmd)
	defer func() {
		worker.Signal(syscall.SIGTERM)
		if worker.Wait() != 0 {
			t.Errorf("work: %s", worker.Output())
		}
	}()
	url := "http://" + worker.Await(`msg="serving metrics and health" addr=(\S+)`)[1]
	fetch := func(path string) string {
		t.Helper()
		resp, err := http.Get(url + path)
		require.NoError(t, err)
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s, %v", path, resp.Status, err)
		}
		return string(body)
	}
	text := ""
	for end := time.Now().Add(time.Minute); !strings.Contains(text, "\ngcsup_fleet_files_total 3\n") || !strings.Contains(text, "\ngcsup_fleet_queued_tasks 0\n"); time.Sleep(50 * time.Millisecond) {
		if text = fetch("/metrics"); time.Now().After(end) {
			t.Fatalf("the files are not finished:\n%s", text)
		}
	}
	for _, series := range []string{
		`gcsup_files_total{outcome="done"} 3`, "gcsup_file_bytes_total 9.439184e+06", "gcsup_sent_bytes_total 9.439184e+06", "gcsup_fleet_sent_bytes_total 9.439184e+06",
		"gcsup_active_uploads 0", `gcsup_failures_total{kind="no_saved_upload"} 0`,
	} {
		if !strings.Contains(text, "\n"+series+"\n") {
			t.Errorf("no series %s:\n%s", series, text)
		}
	}
	if health := fetch("/healthz"); health != "ok\n" {
		t.Errorf("health %q", health)
	}
}
