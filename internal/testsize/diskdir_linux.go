package testsize

import (
	"os"
	"syscall"
	"testing"
)

const tmpfsMagic = 0x01021994 // of statfs(2)

// DiskDir returns a new directory on a disk, even if the directory for temporary files
// is in memory. It is for tests about the times of files: for a file in memory, gcsup
// does not rely on them.
func DiskDir(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err != nil || fs.Type != tmpfsMagic {
		return dir
	}
	dir, err := os.MkdirTemp("/var/tmp", "gcsup-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}
