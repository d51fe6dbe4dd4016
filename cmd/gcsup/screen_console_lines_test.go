package main

import (
	"errors"
	"strings"
	"testing"
)

// TestMessageIsOneLine checks that a line break in a file name does not start a new
// line.
func TestMessageIsOneLine(t *testing.T) {
	var out strings.Builder
	c := newConsole(&out, false)
	c.message("skipped %s: %v", "a\ngcsup: done\x1b[31m", errors.New("b\nc"))
	c.message("not resumed:%s", block("\n  one\n  two"))
	want := "gcsup: skipped a?gcsup: done?[31m: b?c\ngcsup: not resumed:\n  one\n  two\n"
	if got := out.String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestRangeText(t *testing.T) {
	for _, c := range []struct {
		acknowledged, sent, size int64
		want                     string
	}{
		{0, 17 * mib, 57 * mib, "0 to 17 of 57 MiB"},
		{5 * mib, 5*mib + 1000, 10 * mib, "5 of 10 MiB"},
		{5 * mib, 7 * mib, 10 * mib, "5 to 7 of 10 MiB"},
		{0, 100, 57 * mib, "0 of 57 MiB"},
		{512 << 10, 512 << 10, 100 << 30, "512 KiB of 100 GiB"},
	} {
		if got := rangeText(c.acknowledged, c.sent, c.size); got != c.want {
			t.Errorf("rangeText(%d, %d, %d) = %q, want %q", c.acknowledged, c.sent, c.size, got, c.want)
		}
	}
}

// TestIncompleteIsNotComplete checks that only a complete upload reads as complete.
func TestIncompleteIsNotComplete(t *testing.T) {
	for _, c := range []struct {
		stored, size int64
		want         string
	}{
		{8912896, 9000000, "8.50 of 8.58 MiB"},
		{11796480, 12000000, "11.2 of 11.4 MiB"},
		{100*mib - 1, 100 * mib, "99 of 100 MiB"},
		{12000000, 12000000, "11 of 11 MiB"},
	} {
		if got := storedText(c.stored, c.size); got != c.want {
			t.Errorf("storedText(%d, %d) = %q, want %q", c.stored, c.size, got, c.want)
		}
	}
}
