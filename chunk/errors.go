package chunk

import "errors"

var (
	// ErrChanged says that the source is not what it was: it is shorter, its
	// path names another file, or a second reading gave other bytes. What was
	// uploaded so far must not be completed with it.
	ErrChanged = errors.New("source changed")

	// ErrRead says that the source could not be read. The cause is wrapped
	// beside it.
	ErrRead = errors.New("cannot read source")

	// ErrNotRegular says that a path is not a regular file, or one whose size
	// does not describe its content, so it cannot be opened as a [Source]. Pipes and devices can be uploaded through a
	// [Stream].
	ErrNotRegular = errors.New("not a regular file")
)
