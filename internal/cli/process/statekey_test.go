package process_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"gcsup/internal/cli/process"
	"gcsup/internal/require"
)

// TestMode checks that a key file that others can access is refused. fleet/deploy tests a key on a
// read-only mount.
func TestMode(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no modes")
	}
	path := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(path, make([]byte, 32), 0o600))
	for mode, want := range map[os.FileMode]string{0o600: "", 0o400: "", 0o440: "others can access", 0o640: "others can access", 0o644: "others can access"} {
		require.NoError(t, os.Chmod(path, mode))
		_, err := process.ReadStateKey(path)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("mode %04o: %v, want %q", mode, err, want)
		}
	}
}
