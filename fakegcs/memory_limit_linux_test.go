package fakegcs_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"gcsup/fakegcs"
	"gcsup/internal/require"
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
		require.NoError(t, syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, "size=8m"))
	}
}

// TestFullDisk fills the file system of the temporary file.
func TestFullDisk(t *testing.T) {
	dir := tempDir(t)
	grow := smallDisk(t, dir)
	filler := filepath.Join(dir, "filler")
	require.NoError(t, os.WriteFile(filler, make([]byte, 300<<10), 0o600))
	w := newWorld(t, &fakegcs.Options{Memory: -1})
	w.do("PUT", "/bkt/old", numbered(7, 8<<10))
	checkNoSpace(t, w, func() {
		require.NoError(t, os.Remove(filler))
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
	require.NoError(t, err)
	for n := 1; err == nil; n, err = filler.Write(make([]byte, 4<<10)) {
		if n == 0 {
			t.Fatal("the file system does not get full")
		}
	}
	w.want(503, "--dir", "PUT", uri, nil, "Content-Range: bytes */262144")
	require.NoError(t, os.Remove(filler.Name()))
	require.NoError(t, filler.Close())
	w.want(200, "", "PUT", uri, nil, "Content-Range: bytes */262144")
	if left, err := filepath.Glob(filepath.Join(dir, "*", "*", "*.tmp")); err != nil || len(left) > 0 {
		t.Errorf("temporary files are left: %q, %v", left, err)
	}
	if err := w.gcs.Close(); err != nil { // or the file system is in use
		t.Error(err)
	}
}
