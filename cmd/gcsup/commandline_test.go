package main

import (
	"slices"
	"strings"
	"testing"
)

// TestContinueArgs checks that a command is repeated without headers and
// --restart.
func TestContinueArgs(t *testing.T) {
	for args, want := range map[string]string{
		"cp -r a gs://b/": "cp -r a gs://b/",
		"cp --additional-headers X:hunter2 -r a gs://b/":   "cp -r a gs://b/",
		"cp -r a gs://b/ --additional-headers=X=hunter2":   "cp -r a gs://b/",
		"cp -r --restart a gs://b/ --restart=true":         "cp -r a gs://b/",
		"cp -r -- --restart gs://b/":                       "cp -r -- --restart gs://b/",
		"cp -r a gs://b/ --additional-headers":             "cp -r a gs://b/",
		"cp --skip-identical=mtime --jobs 3 -r a. gs://b/": "cp --skip-identical=mtime --jobs 3 -r a. gs://b/",
	} {
		if got := continueArgs(strings.Fields(args)); !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("continueArgs(%q) = %q, want %q", args, got, want)
		}
	}
}
