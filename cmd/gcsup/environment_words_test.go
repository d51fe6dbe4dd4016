package main

import (
	"io"
	"slices"
	"strings"
	"testing"
)

// TestWordsFromEnv checks that a command that can be pasted has the flags from the
// environment, which may be set for one run only, but no headers.
func TestWordsFromEnv(t *testing.T) {
	for name, value := range map[string]string{
		"GCSUP_EMULATOR": "1", "GCSUP_CONTENT_LANGUAGE": "de, en", "GCSUP_SKIP_IDENTICAL": "mtime", "GCSUP_METADATA": "a=b",
		"GCSUP_ADDITIONAL_HEADERS": "X-Secret=hunter2", "GCSUP_RESTART": "true", "GCSUP_JOBS": "3",
	} {
		t.Setenv(name, value)
	}
	root, _ := newRoot(stdio{strings.NewReader(""), io.Discard, io.Discard})
	cp, _, err := root.Find([]string{"cp"})
	if err != nil {
		t.Fatal(err)
	}
	if err := cp.Flags().Parse([]string{"--jobs=4"}); err != nil {
		t.Fatal(err)
	}
	if err := envRules.Set(cp); err != nil {
		t.Fatal(err)
	}
	want := []string{"--content-language=de, en", "--emulator", "--metadata=a=b", "--skip-identical=mtime"}
	if got := wordsFromEnv(cp.Flags()); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
