// Package nolink opens directories and files without following symbolic links. A user who can write to a
// directory can replace what is in it by a link at any moment. A process that follows the link reads and removes
// files elsewhere, with its own permissions.
//
// What it opens is an [os.Root]: the methods of an os.Root that take the name of an entry and do not open it, such as
// Lstat, Mkdir, Remove and Rename, follow no link. os.Root alone is not enough, because its Open and OpenRoot follow
// a link that stays inside. Each component is therefore compared before and after it was opened.
//
// openat2 with RESOLVE_NO_SYMLINKS and RESOLVE_BENEATH gives the same guarantee with one system call, but only Linux
// has it, filters of system calls forbid it, and package os makes no os.Root of a descriptor. The walk would be
// needed beside it.
package nolink

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

var (
	// ErrLink means that a component of a path is a symbolic link.
	ErrLink = errors.New("it is a symbolic link, which is not followed")
	// ErrNotDirectory means that another component than the last one is not a directory.
	ErrNotDirectory = errors.New("it is not a directory")
	// ErrNotRegular means that the file is not a regular file.
	ErrNotRegular = errors.New("it is not a regular file")

	errChanging = errors.New("it was replaced while it was opened")
)

// Refused reports whether err means that a component is a link, or is not what it should be.
func Refused(err error) bool {
	return errors.Is(err, ErrLink) || errors.Is(err, ErrNotDirectory) || errors.Is(err, ErrNotRegular)
}

// looked is called between the look at an entry and its opening. A test replaces it.
var looked = func() {}

// tries is how many times a component is opened that another process replaces meanwhile.
const tries = 10

// Dir opens the directory rel below base. Links in base are followed: the caller chose it. rel is local, see
// [filepath.IsLocal], or "".
func Dir(base, rel string) (*os.Root, error) {
	dir, err := os.OpenRoot(base)
	if err != nil || rel == "" || rel == "." {
		return dir, err
	}
	defer dir.Close()
	return Below(dir, rel)
}

// Below opens the directory rel below dir. rel is local, or "".
func Below(dir *os.Root, rel string) (*os.Root, error) {
	if !filepath.IsLocal(rel) && rel != "" {
		return nil, &fs.PathError{Op: "open", Path: rel, Err: errors.New("it is not below " + dir.Name())}
	}
	at := dir
	for name := range strings.SplitSeq(filepath.Clean(rel), string(filepath.Separator)) {
		next, err := Sub(at, name)
		if at != dir {
			_ = at.Close()
		}
		if err != nil {
			return nil, err
		}
		at = next
	}
	return at, nil
}

// Sub opens the directory name in parent.
func Sub(parent *os.Root, name string) (*os.Root, error) {
	var dir *os.Root
	err := open(parent, name, func(was fs.FileInfo) error {
		if !was.IsDir() {
			return ErrNotDirectory
		}
		return nil
	}, func() (now fs.FileInfo, err error) {
		if dir, err = parent.OpenRoot(name); err != nil {
			return nil, err
		}
		if now, err = dir.Stat("."); err != nil {
			_ = dir.Close()
		}
		return now, err
	}, func() { _ = dir.Close() })
	if err != nil {
		return nil, err
	}
	return dir, nil
}

// Open opens the regular file name in dir for reading. It does not wait for the writer of a named pipe.
func Open(dir *os.Root, name string) (*os.File, error) {
	var f *os.File
	err := open(dir, name, func(was fs.FileInfo) error {
		if !was.Mode().IsRegular() {
			return ErrNotRegular
		}
		return nil
	}, func() (now fs.FileInfo, err error) {
		if f, err = dir.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0); err != nil {
			return nil, err
		}
		if now, err = f.Stat(); err != nil {
			_ = f.Close()
		}
		return now, err
	}, func() { _ = f.Close() })
	if err != nil {
		return nil, err
	}
	return f, nil
}

// open calls do, which opens the entry name of dir, until it has opened what the name itself is. undo closes
// what do opened.
func open(dir *os.Root, name string, check func(was fs.FileInfo) error, do func() (now fs.FileInfo, err error), undo func()) error {
	failed := func(err error) error {
		if pe, ok := errors.AsType[*fs.PathError](err); ok {
			err = pe.Err
		}
		return &fs.PathError{Op: "open", Path: filepath.Join(dir.Name(), name), Err: err}
	}
	if name != filepath.Base(name) || name == ".." { // an entry, and no path
		return failed(fs.ErrInvalid)
	}
	for range tries {
		was, err := dir.Lstat(name)
		switch {
		case err != nil:
			return failed(err)
		case was.Mode()&fs.ModeSymlink != 0:
			return failed(ErrLink)
		}
		if err := check(was); err != nil {
			return failed(err)
		}
		looked()
		now, err := do()
		if err == nil {
			if os.SameFile(was, now) && check(now) == nil { // a new pipe can have the number of a removed file
				return nil
			}
			undo()
			continue
		}
		if again, lerr := dir.Lstat(name); lerr == nil && os.SameFile(was, again) {
			return failed(err) // it was not replaced
		}
	}
	return failed(errChanging)
}
