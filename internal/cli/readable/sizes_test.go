package readable

import "testing"

const mib = 1 << 20

func TestStored(t *testing.T) {
	for _, c := range []struct {
		committed, size int64
		want            string
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
		{8912896, 9000000, "8.50 of 8.58 MiB"}, // only a complete upload reads as complete
		{11796480, 12000000, "11.2 of 11.4 MiB"},
		{12000000, 12000000, "11 of 11 MiB"},
	} {
		if got := Committed(c.committed, c.size); got != c.want {
			t.Errorf("Committed(%d, %d) = %q, want %q", c.committed, c.size, got, c.want)
		}
	}
	for _, c := range []struct{ committed, size, want int64 }{{0, 0, 0}, {99, 100, 99}, {100*mib - 1, 100 * mib, 99}, {1 << 62, 1 << 62, 100}} {
		if got := CommittedPercent(c.committed, c.size); got != c.want {
			t.Errorf("CommittedPercent(%d, %d) = %d, want %d", c.committed, c.size, got, c.want)
		}
	}
}

func TestRoundedDown(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 B", 999: "999 B", 5 * mib: "5.0 MiB", 3*mib + 799<<10: "3.7 MiB", 10*mib - 1: "9.9 MiB", 19*mib + 900<<10: "19 MiB", 1<<63 - 1: "8.0 EiB",
	} {
		if got := RoundedDown(n); got != want {
			t.Errorf("RoundedDown(%d) = %s, want %s", n, got, want)
		}
	}
}

func TestRange(t *testing.T) {
	for _, c := range []struct {
		committed, sent, size int64
		want                  string
	}{
		{0, 17 * mib, 57 * mib, "0 to 17 of 57 MiB"},
		{5 * mib, 5*mib + 1000, 10 * mib, "5 of 10 MiB"},
		{5 * mib, 7 * mib, 10 * mib, "5 to 7 of 10 MiB"},
		{0, 100, 57 * mib, "0 of 57 MiB"},
		{512 << 10, 512 << 10, 100 << 30, "512 KiB of 100 GiB"},
	} {
		if got := Range(c.committed, c.sent, c.size); got != c.want {
			t.Errorf("Range(%d, %d, %d) = %q, want %q", c.committed, c.sent, c.size, got, c.want)
		}
	}
}

func TestPrecise(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 B", 512 * mib: "512 MiB", 1<<30 - 1: "1024 MiB", 4<<30 - 1: "3.999 GiB", 4<<30 + mib: "4.000 GiB", 4<<30 + 3*mib: "4.002 GiB",
		512<<30 + 11*mib: "512.01 GiB", 1<<40 - 1: "1023.99 GiB", 3<<40 + 1<<30: "3.0009 TiB",
	} {
		if got := Precise(n); got != want || len(got) > 11 {
			t.Errorf("Precise(%d) = %q, want %q", n, got, want)
		}
	}
}
