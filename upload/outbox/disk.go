package outbox

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"time"
)

// disk has the operations that change the directory. A test replaces it to simulate a power loss.
type disk interface {
	create(path string, perm fs.FileMode) (diskFile, error) // for writing; the file must not exist
	rename(from, to string) error                           // an error that wraps fs.ErrExist if there is a file with the new name
	replace(from, to string) error                          // like rename, but replaces the file with the new name
	remove(path string) error
	lstat(path string) (fs.FileInfo, error)
	same(a, b fs.FileInfo) bool // they are the same file
	setTime(path string, modTime time.Time) error
	mkdir(path string) error
	sync(dir string) error // makes the names in the directory durable, not the content of the files
}

type diskFile interface {
	io.WriteCloser
	Sync() error
}

// osDisk is the disk of the system.
type osDisk struct{}

func (osDisk) create(path string, perm fs.FileMode) (diskFile, error) {
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
}

func (osDisk) rename(from, to string) error           { return renameNew(from, to) }
func (osDisk) replace(from, to string) error          { return os.Rename(from, to) }
func (osDisk) remove(path string) error               { return os.Remove(path) }
func (osDisk) lstat(path string) (fs.FileInfo, error) { return os.Lstat(path) }
func (osDisk) same(a, b fs.FileInfo) bool             { return os.SameFile(a, b) }
func (osDisk) mkdir(path string) error                { return os.Mkdir(path, 0o777) }
func (osDisk) sync(dir string) error                  { return syncDir(dir) }

func (osDisk) setTime(path string, modTime time.Time) error {
	return os.Chtimes(path, time.Time{}, modTime)
}

// renameChecked renames a file if there is none with the new name. Another process can create one
// in between, which is then replaced.
func renameChecked(from, to string) error {
	if _, err := os.Lstat(to); err == nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: fs.ErrExist}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Rename(from, to)
}
