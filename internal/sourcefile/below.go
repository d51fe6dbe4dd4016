package sourcefile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"gcsup/chunk"
	"gcsup/internal/nolink"
	"gcsup/internal/regular"
)

// below is the path rel below base. No link below base is followed.
type below struct {
	base, rel string
	opened    *os.Root // the directory of the file when it was opened
}

// stat looks in the directory that was opened, whatever its path is now. Only dir walks to the file again.
func (b below) stat() (fs.FileInfo, error) { return b.opened.Lstat(filepath.Base(b.rel)) }
func (b below) dir() (*os.Root, error)     { return nolink.Dir(b.base, filepath.Dir(b.rel)) }
func (b below) close()                     { _ = b.opened.Close() }

// OpenBelow is like [Open] for the file rel below the directory base. It follows no symbolic link below base, and
// neither do the other methods of the File: if rel, or a directory above it, is a link or was replaced by one, the
// error wraps [chunk.ErrNotRegular]. Use it if other users can write to base. rel must be local, see [filepath.IsLocal].
//
// The directory of the file stays open, too, so that [File.Identity] need not open those above it again: it does not
// notice that one of them was replaced. [File.Remove] and [File.Dispose] do.
func OpenBelow(base, rel string) (*File, error) {
	dir, err := nolink.Dir(base, filepath.Dir(rel))
	if err != nil {
		return nil, belowError(err)
	}
	s, err := openFile(dir, base, rel)
	if err != nil {
		_ = dir.Close()
	}
	return s, err
}

// openFile opens a regular file in dir, which is that of the file rel below base.
func openFile(dir *os.Root, base, rel string) (*File, error) {
	f, err := openIn(dir, filepath.Base(rel))
	if err != nil {
		return nil, err
	}
	s, err := fromFile(f, filepath.Join(base, rel))
	if err == nil {
		base, err = absolute(base)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	s.at = below{base, filepath.Clean(rel), dir}
	return s, nil
}

// openIn opens the regular file name in dir.
func openIn(dir *os.Root, name string) (*os.File, error) {
	path := filepath.Join(dir.Name(), name)
	info, err := dir.Lstat(name)
	if err != nil {
		return nil, regular.CannotOpen(&fs.PathError{Op: "open", Path: path, Err: cause(err)})
	}
	if info.Mode()&fs.ModeSymlink == 0 {
		if err := regular.Check(path, info.Mode()); err != nil {
			return nil, err
		}
	}
	f, err := nolink.Open(dir, name)
	if err != nil {
		return nil, belowError(err)
	}
	return f, nil
}

// belowError returns the error of Open for an error of package nolink.
func belowError(err error) error {
	pe, ok := errors.AsType[*fs.PathError](err)
	if ok && (errors.Is(err, nolink.ErrLink) || errors.Is(err, nolink.ErrNotRegular)) {
		return fmt.Errorf("open %s: %w: %w", pe.Path, chunk.ErrNotRegular, pe.Err)
	}
	return regular.CannotOpen(err)
}

// InspectIn is like [Inspect] for the file name in dir. It follows no symbolic link. The errors
// are those of [OpenBelow].
func InspectIn(dir *os.Root, name string) (chunk.Identity, Writers, error) {
	f, err := openIn(dir, name)
	if err != nil {
		return chunk.Identity{}, WritersUnknown, err
	}
	defer f.Close()
	return inspect(f)
}
