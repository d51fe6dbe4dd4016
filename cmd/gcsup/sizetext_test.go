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
