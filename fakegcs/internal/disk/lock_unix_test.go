//go:build unix

package disk

import (
	"syscall"
	"testing"

	"gcsup/internal/require"
)

// TestCloseUnlocks closes a directory while a process that is starting has a copy of the
// file descriptor of the lock.
func TestCloseUnlocks(t *testing.T) {
	path := t.TempDir()
	d, err := Open(path)
	require.NoError(t, err)
	child, err := syscall.Dup(int(d.lock.Fd()))
	require.NoError(t, err)
	defer syscall.Close(child)
	require.NoError(t, d.Close())
	again, err := Open(path)
	require.NoError(t, err)
	require.NoError(t, again.Close())
}
