package main

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"gcsup/fleet/internal/fleet"
)

// TestProgressLine checks the line for people, its cut to the width of a terminal, and the mean of
// the rate.
func TestProgressLine(t *testing.T) {
	t.Parallel()
	s := &fleet.Status{
		Done: fleet.Count{Files: 1000, Bytes: 1 << 30}, Active: fleet.Count{Files: 1, Bytes: 1 << 30}, Waiting: fleet.Count{Files: 499, Bytes: 2 << 30},
		Failed: 2, Rate: 100 << 20, Draining: true,
		Workers: []fleet.WorkerStatus{
			{Name: "a", Condition: "sending", Active: []fleet.ActiveUpload{{Task: "t", Sent: 1 << 29, Size: 1 << 30}}},
			{Name: "b", Condition: "idle"},
			{Name: "c", Condition: "silent", Active: []fleet.ActiveUpload{{Task: "u", Sent: 1 << 29, Size: 1 << 30}}},
		},
	}
	var out, messages bytes.Buffer
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	p := newProgress(stdio{&out, &messages}, false)
	p.show(&fleet.Status{Rate: 900 << 20}, now.Add(-time.Minute)) // not in the mean
	p.show(&fleet.Status{}, now.Add(-time.Second))
	messages.Reset()
	p.show(s, now)
	want := "37%, 1,000 of 1,500 files, 1.5 GiB of 4.0 GiB, 50 MiB/s, 51s left, 2 workers, 2 failed, draining"
	if got := messages.String(); got != "gcsup-fleet: 2026-01-02T03:04:05Z  "+want+"\n" {
		t.Errorf("%q", got)
	}
	for columns, want := range map[int]string{200: want, 40: "37%, 1,000 of 1,500 files", 2: "37"} {
		if got := cut(want, columns); !strings.HasPrefix(want, got) || len(got) > columns {
			t.Errorf("cut to %d columns: %q", columns, got)
		}
	}
	if got := cut(want, 40); got != "37%, 1,000 of 1,500 files" {
		t.Errorf("cut to 40 columns: %q", got)
	}
	newProgress(stdio{&out, &messages}, true).show(s, now)
	var line map[string]any
	if err := json.Unmarshal(out.Bytes(), &line); err != nil || line["type"] != "progress" || line["files_done"] != 1000.0 || line["workers"] != 2.0 || line["eta_s"] != 25.0 {
		t.Errorf("%v: %s", err, out.String())
	}
	empty := &fleet.Status{Done: fleet.Count{Files: 1}, Waiting: fleet.Count{Files: 4}}
	if got := p.line(empty, now).String(); !strings.HasPrefix(got, "20%, 1 of 5 files") {
		t.Errorf("with empty files: %s", got)
	}
	if out.Reset(); !regexp.MustCompile(`0 of 0 files, .*no workers$`).MatchString(p.line(&fleet.Status{}, now).String()) {
		t.Error("without workers:", p.line(&fleet.Status{}, now))
	}
}
