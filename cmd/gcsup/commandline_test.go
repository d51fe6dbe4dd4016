package main

import (
	"slices"
	"strings"
	"testing"

	"gcsup/internal/require"
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

// TestAgainNamesStandardInput checks that the command that continues a run says so if it needs the
// same standard input.
func TestAgainNamesStandardInput(t *testing.T) {
	for args, want := range map[string]bool{
		"cp -I gs://b/":             true,
		"cp --files-from - gs://b/": true,
		"cp -r --include-from a --include-from - a gs://b/": true,
		"cp -r --exclude-from=- a gs://b/":                  true,
		"cp --files-from list --exclude-from f gs://b/":     false,
		"cp -I=false a gs://b/":                             false,
	} {
		words := strings.Fields(args)
		flags := newCp(stdio{}).Flags()
		require.NoError(t, flags.Parse(words[1:]))
		text := commandLine{words, flags}.again()
		if got := strings.HasSuffix(text, " (with the same standard input)"); got != want {
			t.Errorf("%s: the command is %s", args, text)
		}
	}
}
