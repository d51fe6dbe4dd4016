package tree

import (
	"errors"
	"fmt"
	"io/fs"
)

// These errors classify failures. Branch on them with errors.Is.
var (
	// ErrUsage means that an argument is wrong: a pattern, a shard or a Source.
	ErrUsage = errors.New("invalid arguments")

	// ErrCollision means that two files would become one object. Neither is
	// uploaded. In a list, the first one is.
	ErrCollision = errors.New("two sources for one object")

	// ErrSymlink means that a symbolic link is not followed. It leads to a
	// directory, out of the tree or to nothing, or it is absolute.
	ErrSymlink = errors.New("symbolic link not followed")

	// ErrNotRegular means that a file is a FIFO, a socket or a device, or that a
	// list names a directory.
	ErrNotRegular = errors.New("not a regular file")

	// ErrName means that the service does not allow the object name.
	ErrName = errors.New("object name not allowed")

	// ErrSort means that names cannot be sorted on disk, for example because
	// the disk of Options.TempDir is full.
	ErrSort = errors.New("cannot sort on disk")
)

// These errors are outcomes of a file that is not reported.
var (
	errGone    = errors.New("removed")
	errIgnored = errors.New("ignored")
)

// withPath returns err with the path of the file. An error of os.Root has only
// the name relative to the root.
func withPath(path string, err error) error {
	if pe, ok := err.(*fs.PathError); ok {
		return &fs.PathError{Op: pe.Op, Path: path, Err: pe.Err}
	}
	return fmt.Errorf("%s: %w", path, err)
}
