package cmdline_test

import (
	"testing"

	"gcsup/internal/cli/cmdline"
)

func TestFlag(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "1": 1, "262144": 262144, "256KiB": 256 << 10, "8MiB": 8 << 20, "8mib": 8 << 20, "8 MiB": 8 << 20,
		"8MB": 8_000_000, "8M": 8_000_000, "1.5GiB": 3 << 29, "8.1234567MiB": 8518061, "9223372036854775807": 1<<63 - 1,
	} {
		var b cmdline.Size
		if err := b.Set(text); err != nil || int64(b) != want {
			t.Errorf("Set(%q) = %d, %v, want %d", text, int64(b), err, want)
		}
		if want == 0 {
			continue
		}
		var again cmdline.Size
		if err := again.Set(b.String()); err != nil || again != b {
			t.Errorf("Set(%q), which prints %d, = %d, %v", b.String(), int64(b), int64(again), err)
		}
	}
	for _, text := range []string{"", "-1", "MiB", "8 apples", "9223372036854775808", "9000000TiB", "1e3"} {
		var b cmdline.Size
		if err := b.Set(text); err == nil {
			t.Errorf("Set(%q) = %d, want an error", text, int64(b))
		}
	}
}
