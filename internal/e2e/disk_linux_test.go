package e2e_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"gcsup/internal/require"
)

// smallDisk makes a directory a small file system in memory, if that is permitted.
func smallDisk(t *testing.T, dir, size string) bool {
	t.Helper()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "mode=700,size="+size); err != nil {
		t.Logf("NOT TESTED: a full disk, because a file system cannot be mounted (%v)", err)
		return false
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	return true
}

// fill fills the disk of a directory.
func fill(t *testing.T, dir string) (free func()) {
	t.Helper()
	path := filepath.Join(dir, "filler")
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600)
	require.NoError(t, err)
	defer f.Close()
	for size := 1 << 20; size > 0; size /= 16 {
		for err = nil; err == nil; {
			_, err = f.Write(make([]byte, size))
		}
	}
	return func() { _ = os.Remove(path) }
}
