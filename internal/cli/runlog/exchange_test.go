package runlog_test

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"gcsup/internal/cli/runlog"
	"gcsup/internal/require"
)

// TestVerboseLog checks the lines of --verbose.
func TestVerboseLog(t *testing.T) {
	reset := errors.New("connection reset")
	at := time.Date(2026, 11, 22, 12, 0, 0, 5e6, time.Local)
	for _, test := range []struct {
		level   slog.Level
		message string
		attrs   []any
		want    string
	}{
		{slog.LevelDebug, "put", []any{"id", "x", "object", "photos/a.jpg", "from", 4, "sent", 8, "status", 308, "committed", 12, "took", 1234567 * time.Nanosecond, "next", "send"},
			"photos/a.jpg put 4+8 → 308 committed 12 1.2ms → send"},
		{slog.LevelDebug, "put", []any{"object", "a", "from", 0, "sent", 8, "status", 0, "err", reset, "took", time.Second, "next", "wait, query: connection reset"},
			"a put 0+8 → no reply 1s → wait, query: connection reset"},
		{slog.LevelDebug, "part", []any{"object", "a", "part", 2, "from", 0, "sent", 8, "status", 200, "took", time.Second, "next", "done"},
			"a part 2: part 0+8 → 200 1s → done"},
		{slog.LevelDebug, "query", []any{"object", "a", "status", 0, "err", reset, "took", time.Second}, // the upload ends
			"a query → no reply 1s → connection reset"},
		{slog.LevelDebug, "stat", []any{"object", "a", "status", 0, "err", reset, "took", time.Second, "next", "finish"},
			"a stat → no reply 1s → finish (connection reset)"},
		{slog.LevelDebug, "cancel", []any{"object", "a", "status", 499, "took", time.Second},
			"a cancel → 499 1s"},
		{slog.LevelDebug, "list", []any{"bucket", "b", "prefix", "", "status", 200, "took", time.Second, "next", "done"},
			"list → 200 1s → done"},
		{slog.LevelDebug, "stat", []any{"object", "a\nb", "status", 404, "took", time.Second, "next", "fail: 404: x\x1b[2J"},
			"a?b stat → 404 1s → fail: 404: x?[2J"},
		{slog.LevelInfo, "upload ended", []any{"id", "", "committed", 5, "err", reset},
			`upload ended id="" committed=5 err=connection reset`},
	} {
		var b strings.Builder
		r := slog.NewRecord(at, test.level, test.message, 0)
		r.Add(test.attrs...)
		require.NoError(t, runlog.NewLines(&b).Handle(t.Context(), r))
		if got, want := b.String(), "12:00:00.005 "+test.want+"\n"; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
