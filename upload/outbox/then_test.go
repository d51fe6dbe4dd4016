package outbox

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"gcsup/internal/require"
)

// fullDisk is a disk without space for a directory, and perhaps without space for a name.
type fullDisk struct {
	osDisk
	names bool // there is space for a name
}

func (fullDisk) mkdir(path string) error {
	return &fs.PathError{Op: "mkdir", Path: path, Err: syscall.ENOSPC}
}

func (d fullDisk) rename(from, to string) error {
	if _, err := d.lstat(to); err != nil && !d.names {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: syscall.ENOSPC}
	}
	return d.osDisk.rename(from, to)
}

// TestRemovesFromFullDisk checks that a file is removed if there is no space for its private name, unless another file has
// replaced it, or a program has it open: only that frees space.
func TestRemovesFromFullDisk(t *testing.T) {
	for _, names := range []bool{true, false} {
		dir := t.TempDir()
		path := filepath.Join(dir, "sub", "file")
		write := func(content string) fs.FileInfo { return written(t, path, content) }
		d := &disposer{disk: fullDisk{names: names}, dir: dir, sync: osDisk{}.sync}
		was := write("uploaded")
		write("another")
		if err := d.dispose(nil, path, was, unchanged); !errors.Is(err, errAltered) {
			t.Errorf("names %v: a file that changed: %v", names, err)
		}
		if err := d.dispose(nil, path, write("uploaded"), func() error { return syscall.ETXTBSY }); !errors.Is(err, syscall.ETXTBSY) {
			t.Errorf("names %v: a file that is open: %v", names, err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != "uploaded" {
			t.Errorf("names %v: the open file has %q, %v", names, got, err)
		}
		err := d.dispose(nil, path, write("uploaded"), func() error {
			if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) != names {
				t.Errorf("names %v: the file before it is removed: %v", names, err)
			}
			return nil
		})
		if err != nil {
			t.Errorf("names %v: %v", names, err)
		}
		if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 0 {
			t.Errorf("names %v: left: %v, %v", names, left, err)
		}
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
	require.NoError(t, os.WriteFile(source, []byte("x"), 0o600))
	require.NoError(t, putFile(&takenDisk{times: 3}, dir, source, "name"))
	if got, err := os.ReadFile(filepath.Join(dir, "name")); err != nil || string(got) != "x" {
		t.Errorf("%q, %v", got, err)
	}
	if err := putFile(&takenDisk{times: 1000}, dir, source, "other"); !errors.Is(err, errFreed) {
		t.Errorf("a name that is never free: %v", err)
	}
}

// TestMoveThroughLink checks that files are not moved to a directory in the outbox that a user has replaced by a link.
func TestMoveThroughLink(t *testing.T) {
	box, elsewhere := t.TempDir(), t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(box, stateDir), 0o700), os.Symlink(elsewhere, filepath.Join(box, ".done"))); err != nil {
		t.Skip(err)
	}
	for _, dir := range []string{".done", ".done/sub"} {
		if err, ok := errors.AsType[*MoveDirError](checkMove(boxDisk(box), box, filepath.Join(box, dir))); !ok {
			t.Errorf("%s: %v", dir, err)
		}
	}
	for _, dir := range []string{elsewhere, filepath.Join(box, stateDir)} {
		if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
			t.Errorf("left in %s: %v, %v", dir, left, err)
		}
	}
}
