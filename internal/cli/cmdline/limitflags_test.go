package cmdline

import (
	"testing"
	"time"
)

func TestSizeLimit(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "1": 1 << 10, "100": 100 << 10, "1.5": 1536, "100b": 100, "100B": 100, "1k": 1 << 10, "1K": 1 << 10, "1Ki": 1 << 10, "1KiB": 1 << 10, "1kib": 1 << 10,
		"5M": 5 << 20, "5MiB": 5 << 20, "1.5G": 3 << 29, "2T": 2 << 40, "1P": 1 << 50, "1E": 1 << 60,
	} {
		var f sizeFlag
		if err := f.Set(text); err != nil || *f.bytes != want {
			t.Errorf("%s: %s, %v; want %d", text, f.String(), err, want)
			continue
		}
		var again sizeFlag
		if err := again.Set(f.String()); err != nil || *again.bytes != want {
			t.Errorf("%s: its text %s is %s, %v", text, f.String(), again.String(), err)
		}
	}
	for _, text := range []string{"", "B", "5MB", "5kB", "-1", "-1M", "1e3", "inf", "nan", "0x1", "1Mi b", "1ib", "1bi", "8E", "5X", "1 M"} {
		var f sizeFlag
		if err := f.Set(text); err == nil {
			t.Errorf("%q: %s, want an error", text, f.String())
		}
	}
	f := sizeFlag{new(int64)}
	if err := f.Set("OFF"); err != nil || f.bytes != nil {
		t.Errorf("off: %s, %v", f.String(), err)
	}
}

func TestAgeLimit(t *testing.T) {
	const day = 24 * time.Hour
	now := time.Now()
	for text, want := range map[string]time.Time{
		"0": now, "90": now.Add(-90 * time.Second), "1.5": now.Add(-1500 * time.Millisecond), "10ms": now.Add(-10 * time.Millisecond), "5m": now.Add(-5 * time.Minute), "1h30m": now.Add(-90 * time.Minute),
		"1d": now.Add(-day), "1d12h": now.Add(-36 * time.Hour), "2w": now.Add(-14 * day), "2M": now.Add(-60 * day), "1.5y": now.Add(-547*day - 12*time.Hour),
		"2026-01-31T12:00:00Z":      time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC),
		"2026-01-31T12:00:00+01:00": time.Date(2026, 1, 31, 11, 0, 0, 0, time.UTC),
		"2026-01-31T12:00:00":       time.Date(2026, 1, 31, 12, 0, 0, 0, time.Local),
		"2026-01-31 12:00:00":       time.Date(2026, 1, 31, 12, 0, 0, 0, time.Local),
		"2026-01-31":                time.Date(2026, 1, 31, 0, 0, 0, 0, time.Local),
		"off":                       {},
		"OFF":                       {},
	} {
		f := ageFlag{text: "1s", age: time.Second}
		if err := f.Set(text); err != nil || !f.limit(now).Equal(want) {
			t.Errorf("%s: %v, %v; want %v", text, f.limit(now), err, want)
		}
	}
	for _, text := range []string{"", "d", "M", "-1", "-1d", "-1h", "1e3", "nany", "0x1y", "300y", "1dd", "1D", "31.1.2026", "soon"} {
		var f ageFlag
		if err := f.Set(text); err == nil {
			t.Errorf("%q: %s, want an error", text, f.limit(now))
		}
	}
}
