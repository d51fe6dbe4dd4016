package testsize

import (
	"os"
	"testing"
)

// MemDir returns a new directory in memory, where the system has one. It is for tests
// that make many small files and are not about the disk, on which these files take
// most of the time. In .ci/run and elsewhere it is a directory of the test.
func MemDir(t testing.TB) string {
	t.Helper()
	if Full(0, 1) == 0 {
		return t.TempDir()
	}
	dir, err := os.MkdirTemp("/dev/shm", "gcsup-test-") // on Linux
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}
