package process_test

import (
	"testing"

	"gcsup/internal/cli/process"
)

func TestPrintable(t *testing.T) {
	for _, c := range []struct{ text, line, lines string }{
		{"a b/ü", "a b/ü", "a b/ü"},
		{"a\nb", "a?b", "a\nb"},
		{"\x1b[2J\r\x7f\u0085", "?[2J???", "?[2J???"},
		{"gpj.\u202eexe", "gpj.?exe", "gpj.?exe"}, // the text that follows would be shown in reverse
		{"\xff", "?", "?"},
	} {
		if got := process.Printable(c.text); got != c.line {
			t.Errorf("Line(%q) = %q, want %q", c.text, got, c.line)
		}
		if got := process.PrintableLines(c.text); got != c.lines {
			t.Errorf("Lines(%q) = %q, want %q", c.text, got, c.lines)
		}
	}
}
