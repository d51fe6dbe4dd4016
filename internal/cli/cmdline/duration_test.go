package cmdline_test

import (
	"testing"
	"time"

	"gcsup/internal/cli/cmdline"
	"gcsup/internal/require"
)

func TestParse(t *testing.T) {
	const day = 24 * time.Hour
	for text, want := range map[string]time.Duration{
		"0": 0, "90s": 90 * time.Second, "1h30m": 90 * time.Minute, "0d": 0,
		"1d": day, "3d": 3 * day, "1.5d": 36 * time.Hour, ".5d": 12 * time.Hour, "2w": 14 * day,
		"1w2d3h4m": 9*day + 3*time.Hour + 4*time.Minute, "1d500ms": day + 500*time.Millisecond,
	} {
		got, err := cmdline.ParseDuration(text)
		if err != nil || got != want {
			t.Errorf("%s: %v, %v; want %v", text, got, err, want)
		}
		var f cmdline.Duration
		require.NoError(t, f.Set(text))
		again, err := cmdline.ParseDuration(f.String())
		if err != nil || again != want {
			t.Errorf("%s: its text %s is %v, %v", text, f.String(), again, err)
		}
	}
	for _, text := range []string{"", "d", "1", "-1s", "-1d", "1d1w", "12h1d", "1d2d", "nand", "infd", "0x1d", "1e3d", "1d-1h", "200000d", "1D", "1 d", "soon"} {
		if got, err := cmdline.ParseDuration(text); err == nil {
			t.Errorf("%q: %v, want an error", text, got)
		}
	}
}
