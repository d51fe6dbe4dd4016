package screen

import (
	"errors"
	"strings"
	"testing"
)

// TestMessageIsOneLine checks that a line break in a file name does not start a new
// line.
func TestMessageIsOneLine(t *testing.T) {
	var out strings.Builder
	c := NewConsole(&out, false)
	c.Message("skipped %s: %v", "a\ngcsup: done\x1b[31m", errors.New("b\nc"))
	c.Message("not resumed:%s", Block("\n  one\n  two"))
	want := "gcsup: skipped a?gcsup: done?[31m: b?c\ngcsup: not resumed:\n  one\n  two\n"
	if got := out.String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
