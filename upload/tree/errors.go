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

	// ErrSymlink means that a symbolic link is not followed. Most of these errors are
	// an [EntryError].
	ErrSymlink = errors.New("symbolic link not followed")

	// ErrNotRegular means that a file is a FIFO, a socket or a device, or that a
	// list names a directory. In a walk it is an [EntryError].
	ErrNotRegular = errors.New("not a regular file")

	// ErrName means that the service does not allow the object name.
	ErrName = errors.New("object name not allowed")

	// ErrLeftOut means that a file is not uploaded because it is in one of Options.Private or,
	// with Options.ReportLeftOut, because it is not within the limits of [Options] or vanished.
	// It is an [EntryError], except for a Source that is a file.
	ErrLeftOut = errors.New("left out")

	// ErrSort means that names cannot be sorted on disk, for example because
	// the disk of Options.TempDir is full.
	ErrSort = errors.New("cannot sort on disk")
)

// A Kind is what an entry of a directory is, if it is not a file.
type Kind string

// The kinds of entries that are not files.
const (
	Link            Kind = "link"              // a symbolic link, with Options.ReportSymlinks or Options.ReportLeftOut
	LinkToDirectory Kind = "link_to_directory" // a symbolic link to a directory
	LinkOutside     Kind = "link_outside"      // a symbolic link that is absolute, or leads out of the source
	LinkDangling    Kind = "link_dangling"     // a symbolic link to nothing
	LinkLoop        Kind = "link_loop"         // a symbolic link to itself, or to a directory above it
	FIFO            Kind = "fifo"
	Socket          Kind = "socket"
	Device          Kind = "device"
	Irregular       Kind = "irregular" // another kind that the operating system has
	LeftOut         Kind = "left_out"  // a file that is not within the limits of size and time, with Options.ReportLeftOut
	Vanished        Kind = "vanished"  // a file or directory that was removed during the walk, with Options.ReportLeftOut
	Private         Kind = "private"   // one of Options.Private, or a file in it
)

// An EntryError is the error of an [upload.Job] for an entry of a directory that is not
// a file. Another walk has the same error, so that a program may count such entries
// instead of failing. The error wraps [ErrSymlink], [ErrNotRegular] or [ErrLeftOut].
type EntryError struct {
	Kind Kind
	err  error
}

func (e *EntryError) Error() string { return e.err.Error() }
func (e *EntryError) Unwrap() error { return e.err }

// notFollowed returns the error of a link. The arguments describe why.
func notFollowed(kind Kind, format string, args ...any) error {
	return &EntryError{kind, fmt.Errorf("%w: %w", ErrSymlink, fmt.Errorf(format, args...))}
}

// leftOut returns the error of a file that is reported only with Options.ReportLeftOut.
func leftOut(kind Kind, why string) error {
	return &EntryError{kind, fmt.Errorf("%w: %s", ErrLeftOut, why)}
}

// VanishedError returns the error of a file that was removed after the walk had yielded it, see
// [Vanished].
func VanishedError(path string) error { return withPath(path, errVanished) }

// errVanished is the error of a file or directory that was removed during a walk.
var errVanished = leftOut(Vanished, "it was removed during the walk")

// These errors are those of a directory of Options.Private and of a file in it, and of a Source.
var (
	errPrivate       = leftOut(Private, whyPrivate)
	errPrivateSource = fmt.Errorf("%w: %s", ErrLeftOut, whyPrivate)
)

const whyPrivate = "it is in a directory that can have secrets"

// errUnselected is the error of a symbolic link that Options.Include does not select.
var errUnselected = notFollowed(Link, "the patterns do not select it, but may select files to which it leads")

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
