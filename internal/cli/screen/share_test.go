package screen

import (
	"slices"
	"strings"
	"testing"
	"time"

	"gcsup/internal/cli/readable"
	"gcsup/upload"
)

const mib = 1 << 20

// TestShareText checks that the text is never too wide, and reads as complete only at the end.
func TestShareText(t *testing.T) {
	for _, c := range []struct {
		work       Work
		done, size int64
		width      int
		want       string
	}{
		{Uploading, 0, -1, 21, "sent 0 B"},
		{Uploading, 3 * mib, -1, 21, "sent 3.0 MiB"},
		{Uploading, 7, 900, 21, "sent 7 of 900 B"},
		{Uploading, 900 * mib, 1000 * mib, 21, "sent 0.878 of 1.0 GiB"},
		{Uploading, 900 * mib, 1000 * mib, 19, "sent 0.8 of 1.0 GiB"},
		{Uploading, 999*mib - 1, 999 * mib, 21, "sent 998.9 of 999 MiB"},
		{Uploading, 1 << 30, 20_000 * mib, 21, "sent 1.000 of 20 GiB"},
		{Uploading, 123 << 30, 500 << 30, 21, "sent 123.0 of 500 GiB"},
		{Uploading, 123 << 30, 500 << 30, 41, "sent 123.000 of 500 GiB"},
		{Uploading, 2 << 40, 5 << 40, 41, "sent 2.00000 of 5.0 TiB"},
		{Uploading, 55 * mib, 3 << 30, 21, "sent 55 MiB of 3.0 GiB"},
		{Comparing, 20 << 30, 20 << 30, 21, "read 20 of 20 GiB"},
	} {
		if got := shareText(c.work, c.done, c.size, c.width); got != c.want || readable.Width(got) > c.width+2 {
			t.Errorf("shareText(%d, %d, %d) = %q, want %q", c.done, c.size, c.width, got, c.want)
		}
	}
}

// TestOnlyFile checks the frame of one file: one rate, an amount that changes on a slow link, and a bar
// that grows with the terminal.
func TestOnlyFile(t *testing.T) {
	now := time.Unix(0, 0)
	var d *Display
	const size, rate = 4 << 30, 100 << 10
	note := func(seconds int64) {
		d.Note(1, "disk.img", upload.Event{Kind: upload.Progress, Size: size, Sent: 800*mib + seconds*rate, Arrived: 800*mib + seconds*rate, Committed: 700 * mib}, now.Add(time.Duration(seconds)*time.Second))
	}
	bars := map[int]int{}
	for _, columns := range []int{40, 80, 120, 159, 400} {
		d = NewDisplay(Run{Work: Uploading, Files: 1})
		for i := range int64(12) {
			note(i)
		}
		at := now.Add(11 * time.Second)
		before := d.frame(at, columns, 24)
		var text strings.Builder
		for _, l := range before {
			if readable.Width(l.text) > columns-1 {
				t.Errorf("%d columns: %q is too long", columns, l.text)
			}
			text.WriteString(l.text + "\n")
		}
		if strings.Count(text.String(), "/s") != 1 || strings.Count(text.String(), "9:22:21") != 1 || strings.Contains(text.String(), "file 0") {
			t.Errorf("%d columns: want one rate and one time left, and no totals:\n%s", columns, text.String())
		}
		bars[columns] = strings.Index(text.String(), "]") - strings.Index(text.String(), "[")
		note(22)
		if after := d.frame(at, columns, 24); slices.Equal(after, before) {
			t.Errorf("%d columns: nothing changed in 11 s:\n%s", columns, text.String())
		}
	}
	if bars[80] < 25 || bars[120] <= bars[80] || bars[400] > maxBar {
		t.Errorf("widths of the bars: %v", bars)
	}
}
