package outbox

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"gcsup/internal/nolink"
)

// disk has the operations that change the directory. A test replaces it to simulate a power loss.
type disk interface {
	create(path string, perm fs.FileMode) (diskFile, error) // for writing; the file must not exist
	rename(from, to string) error                           // an error that wraps fs.ErrExist if there is a file with the new name
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

// osDisk is the disk of the system. It follows no symbolic link below its places, which other users may write to. Each
// operation opens the directories again, because they may have been moved, unless it is in a directory that [holding] has
// opened.
type osDisk struct{ places []place }

// place is a directory that the user has chosen, or one below it that is open.
type place struct {
	path string
	root *os.Root // nil if it is opened by its path each time
}

// boxDisk returns the disk for an outbox that no process need run.
func boxDisk(dir string) osDisk { return osDisk{[]place{{path: dir}}} }

// holding returns d with dir as the directory at path.
func holding(d disk, path string, dir *os.Root) disk {
	if box, ok := d.(osDisk); ok && dir != nil { // a disk of a test has no open directories
		return osDisk{append([]place{{path, dir}}, box.places...)}
	}
	return d
}

// hold is like holding for the directory that is at path now. The caller must call release.
func hold(d disk, path string) (held disk, release func(), err error) {
	box, ok := d.(osDisk)
	if !ok {
		_, err := d.lstat(path)
		return d, func() {}, err
	}
	dir, release, err := box.dir(path)
	if err != nil {
		return nil, nil, err
	}
	return holding(d, path, dir), release, nil
}

// dir opens a directory. The caller must call release.
func (d osDisk) dir(path string) (dir *os.Root, release func(), err error) {
	opened := func(dir *os.Root, err error) (*os.Root, func(), error) {
		return dir, func() { _ = dir.Close() }, err
	}
	for _, p := range d.places {
		rel, err := filepath.Rel(p.path, path)
		switch {
		case err != nil || !filepath.IsLocal(rel):
		case p.root != nil && rel == ".":
			return p.root, func() {}, nil
		case p.root != nil:
			return opened(nolink.Below(p.root, rel))
		default:
			return opened(nolink.Dir(p.path, rel))
		}
	}
	return opened(os.OpenRoot(path))
}

// in calls do with the directory of a file and the name of the file there.
func (d osDisk) in(path string, do func(dir *os.Root, name string) error) error {
	dir, release, err := d.dir(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer release()
	return do(dir, filepath.Base(path))
}

func (d osDisk) create(path string, perm fs.FileMode) (f diskFile, err error) {
	err = d.in(path, func(dir *os.Root, name string) (err error) {
		f, err = dir.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
		return err
	})
	return f, err
}

func (d osDisk) rename(from, to string) error {
	err := d.in(from, func(fromDir *os.Root, fromName string) error {
		return d.in(to, func(toDir *os.Root, toName string) error { return renameNew(fromDir, fromName, toDir, toName) })
	})
	if err != nil {
		if pe, ok := err.(*fs.PathError); ok {
			err = pe.Err
		}
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
	}
	return nil
}

func (d osDisk) remove(path string) error {
	return d.in(path, func(dir *os.Root, name string) error { return dir.Remove(name) })
}

func (d osDisk) lstat(path string) (info fs.FileInfo, err error) {
	err = d.in(path, func(dir *os.Root, name string) (err error) {
		info, err = dir.Lstat(name)
		return err
	})
	return info, err
}

func (osDisk) same(a, b fs.FileInfo) bool { return os.SameFile(a, b) }

func (d osDisk) mkdir(path string) error {
	return d.in(path, func(dir *os.Root, name string) error { return dir.Mkdir(name, 0o777) })
}

func (d osDisk) sync(path string) error {
	dir, release, err := d.dir(path)
	if err != nil {
		return err
	}
	defer release()
	return nolink.SyncDir(dir)
}

func (d osDisk) setTime(path string, modTime time.Time) error {
	return d.in(path, func(dir *os.Root, name string) error { return dir.Chtimes(name, time.Time{}, modTime) })
}

// open opens a regular file for reading.
func (d osDisk) open(path string) (f *os.File, err error) {
	err = d.in(path, func(dir *os.Root, name string) (err error) {
		f, err = nolink.Open(dir, name)
		return err
	})
	return f, err
}

// renameChecked renames a file if there is none with the new name. Another process can create one
// in between, which is then replaced.
func renameChecked(fromDir *os.Root, from string, toDir *os.Root, to string) error {
	if _, err := toDir.Lstat(to); err == nil {
		return fs.ErrExist
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return renameIn(fromDir, from, toDir, to)
}
