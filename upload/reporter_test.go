package upload

import (
	"log/slog"
	"strings"
	"testing"

	"gcsup/session"
	"gcsup/upload/internal/engine"
)

// TestLoggingWritesOneLine checks the content of a line.
func TestLoggingWritesOneLine(t *testing.T) {
	for _, tt := range []struct {
		level slog.Level
		want  string
	}{
		{slog.LevelDebug, "level=DEBUG msg=put id=x part=3 from=2 sent=5 status=308 committed=5 took=0s next=\"wait, query\"\n"},
		{slog.LevelInfo, ""},
	} {
		var out strings.Builder
		logger := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: tt.level, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}}))
		r := &reporter{nil, logger, func() []slog.Attr { return []slog.Attr{slog.String("id", "x")} }}
		if r.WantsExchange(t.Context()) {
			r.Exchange(&engine.Exchange{
				Context: t.Context(), Part: 3, Offset: 2, Sent: 5, Reply: session.Reply{Op: session.OpPut, Status: 308, Sent: 7, Committed: 5},
				Next: &session.Action{Step: session.Query, Wait: true},
			})
		}
		if got := out.String(); got != tt.want {
			t.Errorf("logged %q, want %q", got, tt.want)
		}
	}
}
