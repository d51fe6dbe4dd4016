package screen

import (
	"errors"
	"strings"
	"testing"

	"gcsup/internal/cli/process"
)

// TestMessageIsOneLine checks that a line break in a file name does not start a new
// line.
func TestMessageIsOneLine(t *testing.T) {
	var out strings.Builder
	c := NewConsole(&out, false)
	c.Message("skipped %s: %v", "a\ngcsup: done\x1b[31m", errors.New("b\nc"))
	c.Message("not resumed:%s", process.Block("\n  one\n  two"))
	c.Fail("a\ngcsup: done")
	want := "gcsup: skipped a?gcsup: done?[31m: b?c\ngcsup: not resumed:\n  one\n  two\ngcsup: a?gcsup: done\n"
	if got := out.String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
