package fakegcs_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"gcsup/fakegcs"
)

// smallDisk mounts a file system of 1 MiB on dir. grow gives it 8 MiB.
func smallDisk(t *testing.T, dir string) (grow func()) {
	t.Helper()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("cannot mount a small file system: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return func() {
		t.Helper()
		if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, "size=8m"); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFullDisk fills the file system of the temporary file.
func TestFullDisk(t *testing.T) {
	dir := tempDir(t)
	grow := smallDisk(t, dir)
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
		grow()
	}, "--memory", "temporary file")
	if err := w.gcs.Close(); err != nil { // or the file system is in use
		t.Error(err)
	}
}

// TestFullDirectory fills the file system of the directory.
func TestFullDirectory(t *testing.T) {
	dir := t.TempDir()
	grow := smallDisk(t, dir)
	w := newWorld(t, &fakegcs.Options{Dir: dir})
	w.do("PUT", "/bkt/old", numbered(7, 8<<10))
	checkNoSpace(t, w, grow, "--dir", "no space left")

	// A session stays active if only the record of its object does not fit.
	uri := w.start("last")
	w.put(uri, 0, q, "*")
	filler, err := os.Create(filepath.Join(dir, "filler"))
	if err != nil {
		t.Fatal(err)
	}
	for n := 1; err == nil; n, err = filler.Write(make([]byte, 4<<10)) {
		if n == 0 {
			t.Fatal("the file system does not get full")
		}
	}
	w.want(503, "--dir", "PUT", uri, nil, "Content-Range: bytes */262144")
	if err := os.Remove(filler.Name()); err != nil {
		t.Fatal(err)
	}
	if err := filler.Close(); err != nil {
		t.Fatal(err)
	}
	w.want(200, "", "PUT", uri, nil, "Content-Range: bytes */262144")
	if left, err := filepath.Glob(filepath.Join(dir, "*", "*", "*.tmp")); err != nil || len(left) > 0 {
		t.Errorf("temporary files are left: %q, %v", left, err)
	}
	if err := w.gcs.Close(); err != nil { // or the file system is in use
		t.Error(err)
	}
}
