//go:build unix

package state_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"gcsup/internal/require"
	"gcsup/session/state"
)

// TestHolderWaitsForNoPipe replaces the lock file by a named pipe after Holder has looked at it. The owner of the
// directory can do so, and root must not hang.
func TestHolderWaitsForNoPipe(t *testing.T) {
	dir := t.TempDir()
	lock := filepath.Join(dir, "id.lock")
	require.NoError(t, os.WriteFile(lock, []byte("{}"), 0o600))
	root, err := os.OpenRoot(dir)
	require.NoError(t, err)
	defer root.Close()
	state.OnLook(t, func() {
		_ = os.Remove(lock)
		if err := syscall.Mkfifo(lock, 0o600); err != nil {
			t.Error(err)
		}
	})
	held, err := state.Holder(t.Context(), root, "id") // which would wait for the end of the test
	if held != nil || !errors.Is(err, state.ErrInsecurePermissions) {
		t.Errorf("%+v, %v", held, err)
	}
}
