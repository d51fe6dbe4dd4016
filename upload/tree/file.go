package tree

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// inspect returns the size and time of the file name in dir, which is the
// directory rel of the source root: "" or with a slash at the end. A symbolic
// link is followed inside root. The error is errGone or errIgnored for a file
// that is not reported.
func inspect(root *os.Root, rel string, dir *os.Root, name string, ignoreLinks bool) (fs.FileInfo, error) {
	info, err := dir.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errGone
	}
	if err != nil {
		return nil, err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		if ignoreLinks {
			return nil, errIgnored
		}
		target, err := dir.Readlink(name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, errGone
		}
		if err != nil {
			return nil, err
		}
		if filepath.IsAbs(target) {
			return nil, fmt.Errorf("%w: the target %s is absolute", ErrSymlink, target)
		}
		if info, err = root.Stat(rel + name); err != nil {
			var pe *fs.PathError
			if errors.As(err, &pe) {
				err = pe.Err
			}
			return nil, fmt.Errorf("%w: target %s: %w", ErrSymlink, target, err)
		}
		if info.IsDir() {
			return nil, fmt.Errorf("%w: the target %s is a directory", ErrSymlink, target)
		}
	}
	return info, checkRegular(info, func() (*os.File, error) { return root.OpenFile(rel+name, openFlags, 0) })
}

// inspectPath is inspect for a file that the caller named. A symbolic link is
// followed anywhere.
func inspectPath(path string, ignoreLinks bool) (fs.FileInfo, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		if ignoreLinks {
			return nil, errIgnored
		}
		if info, err = os.Stat(path); err != nil {
			return nil, err
		}
	}
	return info, checkRegular(info, func() (*os.File, error) { return os.OpenFile(path, openFlags, 0) })
}

// openFlags prevent a wait for the writer of a FIFO that has replaced a file.
const openFlags = os.O_RDONLY | syscall.O_NONBLOCK

// checkRegular returns an error if a file is not regular or not readable. It calls
// open only if the mode does not show whether the file is readable.
func checkRegular(info fs.FileInfo, open func() (*os.File, error)) error {
	switch mode := info.Mode(); {
	case mode.IsRegular():
	case mode.IsDir():
		return fmt.Errorf("%w: it is a directory", ErrNotRegular)
	default:
		return fmt.Errorf("%w: mode %s", ErrNotRegular, mode)
	}
	if surelyReadable(info) {
		return nil
	}
	file, err := open()
	if errors.Is(err, fs.ErrNotExist) {
		return errGone
	}
	if err != nil {
		return err
	}
	return file.Close()
}
