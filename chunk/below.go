package chunk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"gcsup/internal/nolink"
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
// neither do the other methods of the Source: if rel, or a directory above it, is a link or was replaced by one, the
// error wraps [ErrNotRegular]. Use it if other users can write to base. rel must be local, see [filepath.IsLocal].
//
// The directory of the file stays open, too, so that [Source.Identity] need not open those above it again: it does not
// notice that one of them was replaced. [Source.Remove] and [Source.Dispose] do.
func OpenBelow(base, rel string) (*Source, error) {
	dir, err := nolink.Dir(base, filepath.Dir(rel))
	if err != nil {
		return nil, belowError(err)
	}
	s, err := openSource(dir, base, rel)
	if err != nil {
		_ = dir.Close()
	}
	return s, err
}

// openSource opens a regular file in dir, which is that of the file rel below base.
func openSource(dir *os.Root, base, rel string) (*Source, error) {
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
		return nil, openError{&fs.PathError{Op: "open", Path: path, Err: cause(err)}}
	}
	if info.Mode()&fs.ModeSymlink == 0 {
		if err := checkRegular(path, info.Mode()); err != nil {
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
		return fmt.Errorf("open %s: %w: %w", pe.Path, ErrNotRegular, pe.Err)
	}
	return openError{err}
}

// InspectIn is like [Inspect] for the file name in dir. It follows no symbolic link. The errors
// are those of [OpenBelow].
func InspectIn(dir *os.Root, name string) (Identity, Writers, error) {
	f, err := openIn(dir, name)
	if err != nil {
		return Identity{}, WritersUnknown, err
	}
	defer f.Close()
	return inspect(f)
}

// StatIdentityIn is like [StatIdentity] for the file name in dir. It follows no symbolic link.
func StatIdentityIn(dir *os.Root, name string) (Identity, error) {
	info, err := dir.Lstat(name)
	if err == nil && runtime.GOOS != "windows" {
		return identify(nil, info)
	}
	var f *os.File
	if err == nil {
		f, err = nolink.Open(dir, name)
	}
	if err != nil {
		return Identity{}, fmt.Errorf("identity: %w: %w", ErrRead, err)
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil {
		return Identity{}, fmt.Errorf("identity: %w: %w", ErrRead, err)
	}
	return identify(f, info)
}
