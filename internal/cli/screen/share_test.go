package screen

import (
	"testing"

	"gcsup/internal/cli/cells"
)

const mib = 1 << 20

// TestShareText checks that the text is never too wide, and reads as complete only at the end.
func TestShareText(t *testing.T) {
	for _, c := range []struct {
		work       Work
		done, size int64
		want       string
	}{
		{Uploading, 0, -1, "sent 0 B"},
		{Uploading, 3 * mib, -1, "sent 3.0 MiB"},
		{Uploading, 7, 900, "sent 7 of 900 B"},
		{Uploading, 900 * mib, 1000 * mib, "sent 0.8 of 1.0 GiB"},
		{Uploading, 999*mib - 1, 999 * mib, "sent 998 of 999 MiB"},
		{Uploading, 1 << 30, 20_000 * mib, "sent 1.0 of 20 GiB"},
		{Uploading, 55 * mib, 3 << 30, "sent 55 MiB of 3.0 GiB"},
		{Comparing, 20 << 30, 20 << 30, "read 20 of 20 GiB"},
	} {
		if got := shareText(c.work, c.done, c.size); got != c.want || cells.Width(got) > shareWidth+4 {
			t.Errorf("shareText(%d, %d) = %q, want %q", c.done, c.size, got, c.want)
		}
	}
}
