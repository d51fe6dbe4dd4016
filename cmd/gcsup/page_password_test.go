package main

import (
	"strings"
	"testing"
)

// TestReportHasNoPassword checks that the command line in a report has no password of
// a URL.
func TestReportHasNoPassword(t *testing.T) {
	line := commandLine{args: []string{"cp", "--endpoint=http://user:secret@host:1", "a", "gs://b/a@b"}}
	if got := line.text(); strings.Contains(got, "secret") || strings.Contains(got, "user") || !strings.HasSuffix(got, "gs://b/a@b") {
		t.Errorf("got %q", got)
	}
}
