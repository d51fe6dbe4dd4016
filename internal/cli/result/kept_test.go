package result_test

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"gcsup/internal/cli/result"
	"gcsup/internal/require"
)

// TestKeptLines reads testdata/lines-v1.jsonl, what gcsup printed with --json in an earlier version. A field of
// version 1 may be added, but not removed, and its type stays. The file is never rewritten.
func TestKeptLines(t *testing.T) {
	kept, err := os.ReadFile("testdata/lines-v1.jsonl")
	require.NoError(t, err)
	seen := map[string]bool{}
	for line := range bytes.Lines(kept) {
		var head struct{ Type string }
		require.NoError(t, json.Unmarshal(line, &head))
		seen[head.Type] = true
		var fields any = &result.EventLine{}
		switch head.Type {
		case "result":
			fields = &result.Line{}
		case "summary":
			fields = &result.SummaryLine{}
		case "verify":
			fields = &result.VerifyLine{}
		}
		d := json.NewDecoder(bytes.NewReader(line))
		d.DisallowUnknownFields()
		if err := d.Decode(fields); err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
	for _, kind := range []string{"started", "progress", "waiting", "verifying", "result", "summary", "verify"} {
		if !seen[kind] {
			t.Errorf("no line of the type %s", kind)
		}
	}
}
