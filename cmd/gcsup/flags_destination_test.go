package main

import (
	"testing"
)

// TestEmptyPart checks for which destinations there is a warning, and what it suggests.
func TestEmptyPart(t *testing.T) {
	for destination, want := range map[string]string{
		"gs://bkt": "", "gs://bkt/": "", "gs://bkt/a": "", "gs://bkt/a/b/": "", "bkt//a": "",
		"gs://bkt//":      "gs://bkt/",
		"gs://bkt//a":     "gs://bkt/a",
		"gs://bkt/a//b":   "gs://bkt/a/b",
		"gs://bkt/a//":    "gs://bkt/a/",
		"gs://bkt///a//b": "gs://bkt/a/b",
	} {
		if want != "" {
			want = destination + ": two slashes in a row are a part of the name; for one, give " + want
		}
		if got := emptyPart(destination); got != want {
			t.Errorf("emptyPart(%q) = %q, want %q", destination, got, want)
		}
	}
}
