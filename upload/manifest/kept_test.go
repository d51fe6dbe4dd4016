package manifest

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gcsup/chunk"
	"gcsup/internal/require"
)

// TestKeptManifest reads testdata/v1.jsonl, which an earlier version wrote, and which is never rewritten. It also
// checks that this version writes the same lines, which an earlier one reads, and that the same file with the next
// version is refused.
func TestKeptManifest(t *testing.T) {
	const endpoint = "https://storage.googleapis.com"
	at := time.Date(2026, 11, 29, 18, 0, 0, 123e6, time.UTC)
	id := chunk.Identity{Size: 5, ModTimeNS: 1, ChangeTimeNS: 2, Device: 3, Inode: 4}
	want := []Record{
		{Status: Done, Path: "a", Source: id, Object: "a", Generation: 1 << 60, CRC32C: 7, HasCRC32C: true},
		{Status: Skipped, Path: "b", Source: id, Object: "b"},
		{Status: Failed, Path: "c", Source: id, Object: "c", Reason: "permission denied"},
		{Status: Skipped, Path: "link", Object: "link", Reason: "a symbolic link"},
	}
	kept, err := os.ReadFile("testdata/v1.jsonl")
	require.NoError(t, err)
	lines := bytes.SplitAfter(kept, []byte("\n"))
	if len(lines) != len(want)+1 {
		t.Fatalf("%d lines, want %d", len(lines)-1, len(want))
	}
	for i, r := range want {
		r.Bucket, r.Time, r.endpoint = "bucket", at, endpoint
		if got, err := decode(bytes.TrimSuffix(lines[i], []byte("\n"))); err != nil || got != r {
			t.Errorf("line %d: %+v, %v; want %+v", i+1, got, err, r)
		}
		if text, err := r.encode(); err != nil || !bytes.Equal(text, lines[i]) {
			t.Errorf("line %d: this version writes %s (%v), which an earlier one may not read", i+1, text, err)
		}
	}
	next := filepath.Join(t.TempDir(), "m")
	require.NoError(t, os.WriteFile(next, bytes.ReplaceAll(kept, []byte(`{"v":1,`), []byte(`{"v":2,`)), 0o600))
	if _, err := Open(next, endpoint); !errors.Is(err, ErrVersion) || !strings.Contains(err.Error(), "version 2, this program knows version 1") {
		t.Errorf("with version 2: %v", err)
	}
}
