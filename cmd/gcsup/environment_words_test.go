package main

import (
	"slices"
	"testing"

	"gcsup/internal/require"
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
	cp := commandOf(t, "cp")
	require.NoError(t, cp.Flags().Parse([]string{"--jobs=4"}))
	require.NoError(t, envRules.Set(cp))
	want := []string{"--content-language=de, en", "--emulator", "--metadata=a=b", "--skip-identical=mtime"}
	if got := wordsFromEnv(cp.Flags()); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
