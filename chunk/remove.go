package chunk

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// Remove removes the file that [Open] opened, and closes the Source. want is the identity
// of the bytes that the caller has used. If the file has another identity, or if its path
// names another file, nothing is removed, and the error wraps [ErrChanged]. If the path is
// a symbolic link, the error wraps [ErrNotRegular], and neither the link nor its target is
// removed.
//
// On a local file system of Linux, a file that a process has open for writing is not removed
// ([syscall.ETXTBSY]), and no process can open it for writing during the removal. Elsewhere,
// what a process writes after the comparison is lost.
//
// The path is compared in its open directory, immediately before the file is removed there. A
// file that replaces it in the few microseconds between the two is removed instead.
func (s *Source) Remove(want Identity) error {
	return s.release(want, func(dir *os.Root, _ fs.FileInfo) error {
		if err := dir.Remove(filepath.Base(s.path)); err != nil {
			return s.removal(err)
		}
		return nil
	})
}

// Dispose is like Remove, but calls dispose instead of removing the file. dispose gets the path
// and the metadata of the file. It can rename the file, and then compare what it has renamed with
// [os.SameFile].
func (s *Source) Dispose(want Identity, dispose func(path string, file fs.FileInfo) error) error {
	return s.release(want, func(_ *os.Root, info fs.FileInfo) error { return dispose(s.path, info) })
}

// release checks the file as Remove describes, calls do, and closes the Source.
func (s *Source) release(want Identity, do func(dir *os.Root, file fs.FileInfo) error) error {
	defer s.Close()
	if s.path == "" {
		return fmt.Errorf("remove: %w that was opened by its path", ErrNotRegular)
	}
	dir, err := os.OpenRoot(filepath.Dir(s.path))
	if err != nil {
		return err
	}
	defer dir.Close()
	name := filepath.Base(s.path)
	if s.sys.fileSystem(s.file).local { // some others allow a lease only to the server
		if err := denyWriters(s.file); err != nil {
			return s.removal(err)
		}
	}
	switch now, err := s.Identity(); {
	case err != nil:
		return err
	case now != want:
		return fmt.Errorf("remove %s: %w after it was read", s.path, ErrChanged)
	}
	info, err := s.file.Stat()
	if err != nil {
		return fmt.Errorf("remove: %w: %w", ErrRead, err)
	}
	switch entry, err := dir.Lstat(name); {
	case err != nil:
		return s.removal(err)
	case entry.Mode()&fs.ModeSymlink != 0:
		return fmt.Errorf("remove %s: %w but a symbolic link", s.path, ErrNotRegular)
	case !os.SameFile(info, entry):
		return fmt.Errorf("remove: %s was replaced by another file: %w", s.path, ErrChanged)
	}
	if runtime.GOOS == "windows" { // which does not remove an open file
		_ = s.file.Close()
	}
	return do(dir, info)
}

// removal returns an error of the directory with the path of the file.
func (s *Source) removal(err error) error {
	if pe, ok := err.(*fs.PathError); ok {
		err = pe.Err
	}
	return &fs.PathError{Op: "remove", Path: s.path, Err: err}
}
