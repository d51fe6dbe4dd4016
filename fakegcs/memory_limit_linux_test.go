package fakegcs_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"gcsup/fakegcs"
)

// TestFullDisk fills a file system of 1 MiB.
func TestFullDisk(t *testing.T) {
	dir := tempDir(t)
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("cannot mount a small file system: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	filler := filepath.Join(dir, "filler")
	if err := os.WriteFile(filler, make([]byte, 300<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, &fakegcs.Options{Memory: -1})
	w.do("PUT", "/bkt/old", numbered(7, 8<<10))
	checkNoSpace(t, w, func() {
		if err := os.Remove(filler); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, "size=8m"); err != nil {
			t.Fatal(err)
		}
	})
	if err := w.gcs.Close(); err != nil { // or the file system is in use
		t.Error(err)
	}
}
