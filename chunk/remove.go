package chunk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// Remove removes the file that [Open] or [OpenBelow] opened, and closes the Source. want is the identity
// of the bytes that the caller has used. If the file has another identity, or if its path
// names another file, nothing is removed, and the error wraps [ErrChanged]. If the path is
// a symbolic link, the error wraps [ErrNotRegular], and neither the link nor its target is
// removed.
//
// On a local file system of Linux, a file that a process has open for writing is not removed
// ([syscall.ETXTBSY]). Elsewhere, what a process writes after the comparison is lost.
//
// The file is removed as [Held.Remove] describes.
func (s *Source) Remove(want Identity) error { return s.Dispose(want, (*Held).Remove) }

// Dispose is like Remove, but calls dispose instead of removing the file. dispose can give the file another name, and
// then calls [Held.Unchanged].
func (s *Source) Dispose(want Identity, dispose func(*Held) error) error {
	defer s.Close()
	if s.path == "" {
		return fmt.Errorf("remove: %w that was opened by its path", ErrNotRegular)
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
		return fmt.Errorf("remove %s: %w after it was read", s.path, ErrChanged)
	}
	info, err := s.file.Stat()
	if err != nil {
		return fmt.Errorf("remove: %w: %w", ErrRead, err)
	}
	h := &Held{Path: s.path, Dir: dir, Info: info, src: s, want: want, name: filepath.Base(s.path)}
	if err := h.check(h.name); err != nil {
		return err
	}
	if runtime.GOOS == "windows" { // which does not rename or remove an open file
		_ = s.file.Close()
	}
	return dispose(h)
}

// denyWriters gets a lease on a local file.
func (s *Source) denyWriters() error {
	if !s.sys.fileSystem(s.file).local { // some others allow a lease only to the server
		return nil
	}
	if err := denyWriters(s.file); err != nil {
		return s.removal(err)
	}
	return nil
}

// removal returns an error of the directory with the path of the file.
func (s *Source) removal(err error) error {
	return &fs.PathError{Op: "remove", Path: s.path, Err: cause(err)}
}

// Held is a file that is being removed, see [Source.Dispose]. On a local file system of Linux, a process that opens it
// for writing waits.
type Held struct {
	Path string      // absolute
	Dir  *os.Root    // the directory of the file, which is closed when dispose has returned
	Info fs.FileInfo // of the file, not of its path

	src  *Source
	want Identity
	name string
}

// Unchanged returns an error if the file has changed, or if a process has it open for writing. A process that opened
// the file by its name before the file got another one may wait for the end of the lease, and would then write to a
// file that is removed. Unchanged therefore ends the lease and gets it again. The error wraps [ErrChanged] or
// [syscall.ETXTBSY]. The caller then gives the file its name back.
func (h *Held) Unchanged() error {
	if runtime.GOOS == "windows" { // the file is closed
		return nil
	}
	before, err := h.src.openIdentity()
	if err != nil {
		return err
	}
	if h.want.Compare(before) == Different { // the new name changes the change time
		return fmt.Errorf("remove %s: %w after it was read", h.Path, ErrChanged)
	}
	allowWriters(h.src.file)
	if err := h.src.denyWriters(); err != nil {
		return err
	}
	switch after, err := h.src.openIdentity(); {
	case err != nil:
		return err
	case after != before:
		return fmt.Errorf("remove %s: %w while it was being removed", h.Path, ErrChanged)
	}
	return nil
}

// Remove removes the file. It first gives it the name that [Aside] returns, compares what has that name with the open
// file, and calls Unchanged. If the file has changed or is open, it gets its name back. If another file has that name
// then, it stays aside, and the error says so. If the process is killed meanwhile, it stays aside, too.
//
// What remains: a process that found the file by its name before it was renamed, and was then suspended in the system
// call open until the file was removed, writes to the removed file.
func (h *Held) Remove() error {
	aside := Aside(h.name)
	if _, err := h.Dir.Lstat(aside); err == nil {
		return &fs.PathError{Op: "remove", Path: h.Path, Err: fmt.Errorf("%s exists: a process was killed while it removed a file; rename or remove it", filepath.Join(h.Dir.Name(), aside))}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return h.src.removal(err)
	}
	if err := h.Dir.Rename(h.name, aside); err != nil {
		return h.src.removal(err)
	}
	err := h.check(aside)
	if err == nil {
		err = h.Unchanged()
	}
	if err == nil {
		err = h.check(aside)
	}
	if err == nil {
		if err = h.Dir.Remove(aside); err != nil {
			err = h.src.removal(err)
		}
	}
	if err != nil {
		return errors.Join(err, giveBack(h.Dir, aside, h.name))
	}
	return nil
}

// check returns an error unless name names the open file.
func (h *Held) check(name string) error {
	switch entry, err := h.Dir.Lstat(name); {
	case err != nil:
		return h.src.removal(err)
	case entry.Mode()&fs.ModeSymlink != 0:
		return fmt.Errorf("remove %s: %w but a symbolic link", h.Path, ErrNotRegular)
	case !os.SameFile(h.Info, entry):
		return fmt.Errorf("remove: %s was replaced by another file: %w", h.Path, ErrChanged)
	}
	return nil
}

// openIdentity returns the identity of the open file, whatever its name is.
func (s *Source) openIdentity() (Identity, error) {
	info, err := s.file.Stat()
	if err == nil {
		var id Identity
		if id, err = s.identify(info); err == nil {
			return id, nil
		}
	}
	return Identity{}, fmt.Errorf("identity: %w: %w", ErrRead, err)
}
