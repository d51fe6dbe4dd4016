package sourcefile

import (
	"errors"
	"fmt"
	"gcsup/chunk"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// Remove removes the file that [Open] or [OpenBelow] opened, and closes the File. want is the identity
// of the bytes that the caller has used. If the file has another identity, or if its path
// names another file, nothing is removed, and the error wraps [chunk.ErrChanged]. If the path is
// a symbolic link, the error wraps [chunk.ErrNotRegular], and neither the link nor its target is
// removed.
//
// On a local file system of Linux, a file that a process has open for writing is not removed
// ([syscall.ETXTBSY]). Elsewhere, what a process writes after the comparison is lost.
//
// Remove first gives the file the name that [Aside] returns, compares what has that name with the open
// file, and compares the file once more. If the file has changed or is open, it gets its name back. If
// another file has that name then, it stays aside, and the error says so. If the process is killed
// meanwhile, it stays aside, too.
//
// What remains: a process that found the file by its name before it was renamed, and was then suspended in the system
// call open until the file was removed, writes to the removed file.
func (s *File) Remove(want chunk.Identity) error { return s.dispose(want, (*held).remove) }

// Dispose is like Remove, but calls dispose instead of removing the file. path is absolute. dir is its
// directory, which is closed when dispose has returned. info is the metadata of the open file.
//
// dispose can give the file another name, and then calls unchanged. It returns an error if the file has
// changed, or if a process has it open for writing: it wraps [chunk.ErrChanged] or [syscall.ETXTBSY].
// dispose then gives the file its name back. On a local file system of Linux, a process that opens the
// file for writing waits until dispose has returned.
func (s *File) Dispose(want chunk.Identity, dispose func(dir *os.Root, path string, info fs.FileInfo, unchanged func() error) error) error {
	return s.dispose(want, func(h *held) error { return dispose(h.dir, s.path, h.info, h.unchanged) })
}

func (s *File) dispose(want chunk.Identity, dispose func(*held) error) error {
	defer s.Close()
	if s.path == "" {
		return fmt.Errorf("remove: %w that was opened by its path", chunk.ErrNotRegular)
	}
	dir, err := s.at.dir()
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := s.denyWriters(); err != nil {
		return err
	}
	switch now, err := s.Identity(); {
	case err != nil:
		return err
	case now != want:
		return fmt.Errorf("remove %s: %w after it was read", s.path, chunk.ErrChanged)
	}
	info, err := s.file.Stat()
	if err != nil {
		return fmt.Errorf("remove: %w: %w", chunk.ErrRead, err)
	}
	h := &held{dir: dir, info: info, src: s, want: want, name: filepath.Base(s.path)}
	if err := h.check(h.name); err != nil {
		return err
	}
	if runtime.GOOS == "windows" { // which does not rename or remove an open file
		_ = s.file.Close()
	}
	return dispose(h)
}

// denyWriters gets a lease on a local file.
func (s *File) denyWriters() error {
	if !s.sys.fileSystem(s.file).local { // some others allow a lease only to the server
		return nil
	}
	if err := denyWriters(s.file); err != nil {
		return s.removal(err)
	}
	return nil
}

// removal returns an error of the directory with the path of the file.
func (s *File) removal(err error) error {
	return &fs.PathError{Op: "remove", Path: s.path, Err: cause(err)}
}

// held is a file that is being removed.
type held struct {
	dir  *os.Root    // the directory of the file
	info fs.FileInfo // of the file, not of its path
	src  *File
	want chunk.Identity
	name string
}

// unchanged returns an error if the file has changed, or if a process has it open for writing. A process that opened
// the file by its name before the file got another one may wait for the end of the lease, and would then write to a
// file that is removed. unchanged therefore ends the lease and gets it again. The error wraps [chunk.ErrChanged] or
// [syscall.ETXTBSY]. The caller then gives the file its name back.
func (h *held) unchanged() error {
	if runtime.GOOS == "windows" { // the file is closed
		return nil
	}
	before, err := h.src.openIdentity()
	if err != nil {
		return err
	}
	if Compare(h.want, before) == Different { // the new name changes the change time
		return fmt.Errorf("remove %s: %w after it was read", h.src.path, chunk.ErrChanged)
	}
	allowWriters(h.src.file)
	if err := h.src.denyWriters(); err != nil {
		return err
	}
	switch after, err := h.src.openIdentity(); {
	case err != nil:
		return err
	case after != before:
		return fmt.Errorf("remove %s: %w while it was being removed", h.src.path, chunk.ErrChanged)
	}
	return nil
}

// remove removes the file, as [File.Remove] describes.
func (h *held) remove() error {
	aside := Aside(h.name)
	if _, err := h.dir.Lstat(aside); err == nil {
		return &fs.PathError{Op: "remove", Path: h.src.path, Err: fmt.Errorf("%s exists: a process was killed while it removed a file; rename or remove it", filepath.Join(h.dir.Name(), aside))}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return h.src.removal(err)
	}
	if err := h.dir.Rename(h.name, aside); err != nil {
		return h.src.removal(err)
	}
	err := h.check(aside)
	if err == nil {
		err = h.unchanged()
	}
	if err == nil {
		err = h.check(aside)
	}
	if err == nil {
		if err = h.dir.Remove(aside); err != nil {
			err = h.src.removal(err)
		}
	}
	if err != nil {
		return errors.Join(err, giveBack(h.dir, aside, h.name))
	}
	return nil
}

// check returns an error unless name names the open file.
func (h *held) check(name string) error {
	switch entry, err := h.dir.Lstat(name); {
	case err != nil:
		return h.src.removal(err)
	case entry.Mode()&fs.ModeSymlink != 0:
		return fmt.Errorf("remove %s: %w but a symbolic link", h.src.path, chunk.ErrNotRegular)
	case !os.SameFile(h.info, entry):
		return fmt.Errorf("remove: %s was replaced by another file: %w", h.src.path, chunk.ErrChanged)
	}
	return nil
}

// openIdentity returns the identity of the open file, whatever its name is.
func (s *File) openIdentity() (chunk.Identity, error) {
	info, err := s.file.Stat()
	if err != nil {
		return chunk.Identity{}, fmt.Errorf("identity: %w: %w", chunk.ErrRead, err)
	}
	return s.identify(info)
}
