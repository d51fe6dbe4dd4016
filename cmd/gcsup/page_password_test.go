package main

import (
	"os"
	"strings"
	"testing"
)

// TestReportHasNoPassword checks that the command line in a report has no password of
// a URL.
func TestReportHasNoPassword(t *testing.T) {
	args := os.Args
	defer func() { os.Args = args }()
	os.Args = []string{"gcsup", "cp", "--endpoint=http://user:secret@host:1", "a", "gs://b/a@b"}
	if got := displayCommand(); strings.Contains(got, "secret") || strings.Contains(got, "user") || !strings.HasSuffix(got, "gs://b/a@b") {
		t.Errorf("got %q", got)
	}
}
