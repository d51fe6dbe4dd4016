// Package regular opens regular files, and identifies them. Package chunk exports its errors.
package regular

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// The errors of this package also wrap the cause. Package chunk documents them.
var (
	ErrOpen       = errors.New("cannot open source")
	ErrRead       = errors.New("cannot read source")
	ErrNotRegular = errors.New("not a regular file")
)

// openError is an error of the operating system that wraps ErrOpen, too.
type openError struct{ error }

func (e openError) Unwrap() []error { return []error{e.error, ErrOpen} }

// CannotOpen returns err, which then wraps [ErrOpen], too.
func CannotOpen(err error) error { return openError{err} }

// File is an open file.
type File interface {
	io.ReaderAt
	Stat() (fs.FileInfo, error)
}

// Open opens the regular file at path. It does not open a named pipe or a device. The caller then calls
// [Examine], because path may name another file meanwhile.
func Open(path string) (*os.File, error) {
	info, err := os.Stat(path) // opening a FIFO blocks
	if err != nil {
		return nil, CannotOpen(err)
	}
	if err := Check(path, info.Mode()); err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, CannotOpen(err)
	}
	return f, nil
}

// Check returns an error with advice unless mode is that of a regular file.
func Check(path string, mode fs.FileMode) error {
	var what string
	switch {
	case mode.IsRegular():
		return nil
	case mode.IsDir():
		what = "a directory: name the files in it"
	case mode&fs.ModeNamedPipe != 0:
		what = "a named pipe: upload it as a stream"
	case mode&fs.ModeDevice != 0:
		what = "a device: upload it as a stream"
	case mode&fs.ModeSocket != 0:
		what = "a socket: it has no content to upload"
	default:
		what = fmt.Sprintf("of type %v: upload a copy of its content", mode.Type())
	}
	return fmt.Errorf("open %s: %w but %s", path, ErrNotRegular, what)
}

// Examine returns the size and the metadata of an open file, or an error unless it is a regular file without
// content after its size. The files of /proc and some of FUSE have size 0 and content. A file that is being
// written to is accepted: the metadata is then newer than the size, and has another size. path is for errors;
// "" is the name of the file.
func Examine(f File, path string) (size int64, info fs.FileInfo, err error) {
	info, err = f.Stat()
	if err != nil {
		return 0, nil, err
	}
	if path == "" {
		path = info.Name()
	}
	if err := Check(path, info.Mode()); err != nil {
		return 0, nil, err
	}
	size = info.Size()
	switch n, err := f.ReadAt(make([]byte, 1), size); {
	case n > 0:
	case err == nil || errors.Is(err, io.EOF):
		return size, info, nil
	default:
		return 0, nil, fmt.Errorf("open %s: %w: %w", path, ErrRead, err)
	}
	now, err := f.Stat()
	if err != nil {
		return 0, nil, err
	}
	if now.Size() != size {
		return size, now, nil
	}
	return 0, nil, fmt.Errorf("open %s: %w but a file with more content than its size of %d bytes: upload it as a stream", path, ErrNotRegular, size)
}

// Identity has the fields of the Identity of package chunk, which describes them.
type Identity struct {
	Size, ModTimeNS, ChangeTimeNS int64
	Device, Inode                 uint64
}

// newIdentity returns the fields that every platform has.
func newIdentity(info fs.FileInfo) Identity {
	return Identity{Size: info.Size(), ModTimeNS: info.ModTime().UnixNano()}
}
