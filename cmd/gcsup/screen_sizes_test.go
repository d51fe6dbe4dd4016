package main

import "testing"

const mib = 1 << 20

func TestStoredText(t *testing.T) {
	for _, c := range []struct {
		stored, size int64
		want         string
	}{
		{19 * mib, 100 * mib, "19 of 100 MiB"},
		{0, 100 * mib, "0 of 100 MiB"},
		{512 << 10, 100 * mib, "0.5 of 100 MiB"},
		{5 * mib, 10 * mib, "5 of 10 MiB"},
		{mib + mib/2 + 1, 10 * mib, "1.5 of 10 MiB"},
		{100*mib - 1, 100 * mib, "99 of 100 MiB"},
		{10*mib - 1, 10 * mib, "9.9 of 10 MiB"},
		{256 << 10, 3 << 40, "256 KiB of 3 TiB"},
		{5, 7, "5 of 7 B"},
		{0, 0, "0 of 0 B"},
		{1<<63 - 1, 1<<63 - 1, "8 of 8 EiB"},
	} {
		if got := storedText(c.stored, c.size); got != c.want {
			t.Errorf("storedText(%d, %d) = %q, want %q", c.stored, c.size, got, c.want)
		}
	}
	for _, c := range []struct{ stored, size, want int64 }{{0, 0, 0}, {99, 100, 99}, {100*mib - 1, 100 * mib, 99}, {1 << 62, 1 << 62, 100}} {
		if got := storedPercent(c.stored, c.size); got != c.want {
			t.Errorf("storedPercent(%d, %d) = %d, want %d", c.stored, c.size, got, c.want)
		}
	}
}

func TestRoundedDown(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 B", 999: "999 B", 5 * mib: "5.0 MiB", 3*mib + 799<<10: "3.7 MiB", 10*mib - 1: "9.9 MiB", 19*mib + 900<<10: "19 MiB", 1<<63 - 1: "8.0 EiB",
	} {
		if got := roundedDown(n); got != want {
			t.Errorf("roundedDown(%d) = %s, want %s", n, got, want)
		}
	}
}

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
		if got := shareText(c.work, c.done, c.size); got != c.want || textWidth(got) > shareWidth+4 {
			t.Errorf("shareText(%d, %d) = %q, want %q", c.done, c.size, got, c.want)
		}
	}
}
