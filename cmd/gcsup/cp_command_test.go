package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gcsup/internal/require"
)

// TestHashCommand checks that the name of a command depends on the key, and on where its words end.
func TestHashCommand(t *testing.T) {
	names := map[string]bool{}
	for _, words := range [][]string{{"pg_dump", "a", "b"}, {"pg_dump", "a b"}, {"pg_dump", "ab"}, {"pg_dump", "a", "b", ""}, {"pg_dump"}} {
		for _, key := range []string{"key", "another key"} {
			name := hashCommand([]byte(key), words)
			if names[name] || name != hashCommand([]byte(key), words) || strings.Contains(name, "pg_dump") {
				t.Errorf("%q has the name %s", words, name)
			}
			names[name] = true
		}
	}
}

// TestCommandKey checks that there is one key, and that a damaged one is replaced.
func TestCommandKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", commandKeyFile)
	var keys []string
	for range 2 {
		key, err := readCommandKey(path)
		if err != nil || len(key) != 32 {
			t.Fatalf("key %x, %v", key, err)
		}
		keys = append(keys, string(key))
	}
	require.NoError(t, os.WriteFile(path, []byte("short"), 0o600))
	key, err := readCommandKey(path)
	if keys[0] != keys[1] || err != nil || len(key) != 32 || string(key) == keys[0] {
		t.Errorf("keys %x, then %x, %v", keys, key, err)
	}
	if _, err := readCommandKey(filepath.Dir(path)); err == nil {
		t.Error("a directory is a key")
	}
}

// TestSplitCommand checks in which arguments a command follows "--".
func TestSplitCommand(t *testing.T) {
	for _, c := range []struct {
		args  []string
		dash  int
		words []string // nil: "--" has its usual meaning
	}{
		{[]string{"gs://b/o", "pg_dump", "-x"}, 1, []string{"pg_dump", "-x"}},
		{[]string{"gs://b/o", ""}, 1, []string{""}},
		{[]string{"gs://b/o", "cat", "--", "-"}, 1, []string{"cat", "--", "-"}},
		{[]string{"-file", "gs://b/"}, 0, nil},
		{[]string{"f", "gs://b/o"}, 1, nil},
		{[]string{"f", "gs://b/o", "x"}, 2, nil},
		{[]string{"gs://b/o"}, 1, nil},
		{[]string{"gs://b/o", "x"}, -1, nil},
		{[]string{}, 0, nil},
	} {
		destination, words, ok := splitCommand(c.args, c.dash)
		if ok != (c.words != nil) || !slices.Equal(words, c.words) || ok && destination != "gs://b/o" {
			t.Errorf("%q, %d before --: %q, %q, %v, want %q", c.args, c.dash, destination, words, ok, c.words)
		}
	}
}
