package chunk

import "errors"

var (
	// ErrChanged means that the source changed: it is shorter, its path names
	// another file, or its bytes differ from those of the first pass. The
	// upload must not be completed from it.
	ErrChanged = errors.New("source changed")

	// ErrRead means that the source could not be read. The error also wraps the
	// cause.
	ErrRead = errors.New("cannot read source")

	// ErrNotRegular means that a path does not name a regular file, or names a
	// file with more content than its size. It cannot be opened as a [Source].
	// Use a [Stream] for pipes and devices.
	ErrNotRegular = errors.New("not a regular file")
)
