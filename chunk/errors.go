package chunk

import (
	"errors"

	"gcsup/internal/regular"
)

var (
	// ErrChanged means that the source changed: it is shorter, its path names
	// another file, or its bytes differ from those of the first pass. The
	// upload must not be completed from it.
	ErrChanged = errors.New("source changed")

	// ErrOpen means that the source does not exist, or that the operating system does not
	// open it. The error also wraps the cause, an [*io/fs.PathError].
	ErrOpen = regular.ErrOpen

	// ErrRead means that the source could not be read. The error also wraps the
	// cause.
	ErrRead = regular.ErrRead

	// ErrNotRegular means that a path does not name a regular file, or names a
	// file with more content than its size. It cannot be opened as a [Source].
	// Upload pipes and devices as a stream.
	ErrNotRegular = regular.ErrNotRegular
)
