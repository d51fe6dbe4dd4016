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

func TestHideHeaders(t *testing.T) {
	got := strings.Join(hideHeaders([]string{"cp", "--additional-headers=A=secret", "--additional-headers", "B=secret", "x"}), " ")
	if want := "cp --additional-headers=… --additional-headers … x"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
