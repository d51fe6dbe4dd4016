package main

import (
	"io"
	"os"
	"strings"
	"testing"

	"gcsup/internal/require"
)

// TestPathList reads lists that fit in memory and others. The content and the digest do not depend on that, and no
// file is left.
func TestPathList(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	const content = "some\npaths\n"
	digests := map[string]bool{}
	for _, memory := range []int64{1, int64(len(content)) - 1, int64(len(content)), int64(len(content)) + 1} {
		l := &pathList{in: io.NopCloser(strings.NewReader(content)), memory: memory}
		digest, err := l.read()
		require.NoError(t, err)
		digests[digest] = true
		if got, err := io.ReadAll(l); string(got) != content || err != nil {
			t.Errorf("%d bytes in memory: read %q, %v", memory, got, err)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 || len(digests) != 1 {
		t.Errorf("%d digests, files %v, %v, want one digest and no file", len(digests), left, err)
	}
}
