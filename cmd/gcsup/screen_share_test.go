package main

import (
	"testing"

	"gcsup/internal/cli/cells"
)

const mib = 1 << 20

// TestShareText checks that the text is never too wide, and reads as complete only at the end.
func TestShareText(t *testing.T) {
	for _, c := range []struct {
		work       work
		done, size int64
		want       string
	}{
		{uploading, 0, -1, "sent 0 B"},
		{uploading, 3 * mib, -1, "sent 3.0 MiB"},
		{uploading, 7, 900, "sent 7 of 900 B"},
		{uploading, 900 * mib, 1000 * mib, "sent 0.8 of 1.0 GiB"},
		{uploading, 999*mib - 1, 999 * mib, "sent 998 of 999 MiB"},
		{uploading, 1 << 30, 20_000 * mib, "sent 1.0 of 20 GiB"},
		{uploading, 55 * mib, 3 << 30, "sent 55 MiB of 3.0 GiB"},
		{comparing, 20 << 30, 20 << 30, "read 20 of 20 GiB"},
	} {
		if got := shareText(c.work, c.done, c.size); got != c.want || cells.Width(got) > shareWidth+4 {
			t.Errorf("shareText(%d, %d) = %q, want %q", c.done, c.size, got, c.want)
		}
	}
}
