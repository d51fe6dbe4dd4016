package outbox

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// fullDisk is a disk without space for a directory.
type fullDisk struct{ osDisk }

func (fullDisk) mkdir(path string) error {
	return &fs.PathError{Op: "mkdir", Path: path, Err: syscall.ENOSPC}
}

// TestRemovesFromFullDisk checks that a file is removed if there is no space for its private name, unless another file has
// replaced it: only that frees space.
func TestRemovesFromFullDisk(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "sub", "file")
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	write := func(content string) fs.FileInfo {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		info, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info
	}
	d := &disposer{disk: fullDisk{}, dir: dir, sync: syncDir}
	was := write("uploaded")
	write("another")
	if err := d.dispose(path, was); !errors.Is(err, errAltered) {
		t.Errorf("a file that changed: %v", err)
	}
	if err := d.dispose(path, write("uploaded")); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file is left: %v", err)
	}
}

// takenDisk is a disk on which another process has each name for a moment: a Put had it, and the file was uploaded.
type takenDisk struct {
	osDisk
	times int
}

func (d *takenDisk) rename(from, to string) error {
	if d.times--; d.times >= 0 {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: fs.ErrExist}
	}
	return d.osDisk.rename(from, to)
}

// TestPutAfterUpload checks that a Put succeeds if another file had the name, and was uploaded and removed before the two
// could be compared.
func TestPutAfterUpload(t *testing.T) {
	dir, source := t.TempDir(), filepath.Join(t.TempDir(), "source")
	if err := os.WriteFile(source, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := putFile(&takenDisk{times: 3}, dir, source, "name"); err != nil {
		t.Error(err)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "name")); err != nil || string(got) != "x" {
		t.Errorf("%q, %v", got, err)
	}
	if err := putFile(&takenDisk{times: 1000}, dir, source, "other"); !errors.Is(err, errFreed) {
		t.Errorf("a name that is never free: %v", err)
	}
}
