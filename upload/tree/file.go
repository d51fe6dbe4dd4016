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
func inspect(root *os.Root, rel string, dir *os.Root, name string, opts *Options) (fs.FileInfo, error) {
	info, err := dir.Lstat(name)
	if err != nil {
		return nil, orGone(err)
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		if opts.IgnoreSymlinks {
			return nil, errIgnored
		}
		target, err := dir.Readlink(name)
		if err != nil {
			return nil, orGone(err)
		}
		if opts.ReportSymlinks {
			return nil, notFollowed(Link, "target %s", target)
		}
		if filepath.IsAbs(target) {
			return nil, notFollowed(LinkOutside, "the target %s is absolute", target)
		}
		if info, err = root.Stat(rel + name); err != nil {
			return nil, targetError(root, target, err)
		}
		if info.IsDir() {
			return nil, notFollowed(LinkToDirectory, "the target %s is a directory", target)
		}
	}
	return info, checkEntry(info, func() (*os.File, error) { return root.OpenFile(rel+name, openFlags, 0) })
}

// inspectFollowed is inspect for a walk that follows links anywhere.
func inspectFollowed(path string) (fs.FileInfo, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, orGone(err)
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		if info, err = os.Stat(path); err != nil {
			target, _ := os.Readlink(path)
			return nil, targetError(nil, target, err)
		}
	}
	return info, checkEntry(info, func() (*os.File, error) { return os.OpenFile(path, openFlags, 0) })
}

// targetError returns the error of a link to target, which cannot be followed because
// of err. root is the source if the link is followed only inside it.
func targetError(root *os.Root, target string, err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	var kind Kind
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		kind = LinkDangling
	case errors.Is(err, syscall.ELOOP):
		kind = LinkLoop
	case root != nil && errors.Is(err, escapeError(root)):
		kind = LinkOutside
	default: // for example, the target cannot be read
		return fmt.Errorf("%w: target %s: %w", ErrSymlink, target, err)
	}
	return notFollowed(kind, "target %s: %w", target, err)
}

// escapeError returns the error of root for a path that leads out of it. Package os
// does not export it.
func escapeError(root *os.Root) error {
	_, err := root.Stat("..")
	return errors.Unwrap(err)
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

// checkEntry is checkRegular for an entry of a directory.
func checkEntry(info fs.FileInfo, open func() (*os.File, error)) error {
	err := checkRegular(info, open)
	if kind := specialKind(info.Mode()); kind != "" {
		return &EntryError{kind, err}
	}
	return err
}

// specialKind returns the kind of a file that is neither regular nor a directory, or
// "".
func specialKind(mode fs.FileMode) Kind {
	switch {
	case mode.IsRegular(), mode.IsDir():
		return ""
	case mode&fs.ModeNamedPipe != 0:
		return FIFO
	case mode&fs.ModeSocket != 0:
		return Socket
	case mode&fs.ModeDevice != 0:
		return Device
	}
	return Irregular
}

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
	if err != nil {
		return orGone(err)
	}
	return file.Close()
}

// orGone returns errGone if err means that a file does not exist, and otherwise err.
func orGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return errGone
	}
	return err
}
