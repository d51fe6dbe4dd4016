package main

import (
	"slices"
	"testing"
)

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
