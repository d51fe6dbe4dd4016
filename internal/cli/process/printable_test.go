package process_test

import (
	"errors"
	"fmt"
	"testing"

	"gcsup/internal/cli/process"
)

func TestPrintable(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"a b/ü", "a b/ü"},
		{"a\nb", "a?b"},
		{"\x1b[2J\r\x7f\u0085", "?[2J???"},
		{"gpj.\u202eexe", "gpj.?exe"}, // the text that follows would be shown in reverse
		{"a\u2028b\u2029c", "a?b?c"},  // separators of lines
		{"\xff", "?"},
	} {
		if got := process.Printable(c.text); got != c.want {
			t.Errorf("Printable(%q) = %q, want %q", c.text, got, c.want)
		}
	}
}

// TestMessage checks that only the program makes lines: those of a Block, and those of an error that
// has a list.
func TestMessage(t *testing.T) {
	name := "a\ngcsup: forged"
	list := process.WithLines(errors.New(name), "\n  one\n  two")
	for _, c := range []struct {
		got  process.Block
		want string
	}{
		{process.Message("%s: %v", name, errors.New(name)), "a?gcsup: forged: a?gcsup: forged"},
		{process.Message("%s:%s", name, process.Block("\n  b")), "a?gcsup: forged:\n  b"},
		{process.Message("%v", fmt.Errorf("%s: %w: %s", name, list, name)), "a?gcsup: forged: a?gcsup: forged\n  one\n  two: a?gcsup: forged"},
		{process.PrintableError(name+": "+list.Error(), list), "a?gcsup: forged: a?gcsup: forged\n  one\n  two"},
	} {
		if string(c.got) != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}
