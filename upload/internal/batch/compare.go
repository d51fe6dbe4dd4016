package batch

import (
	"time"

	"gcsup/session"
)

// coarseTime is the age below which a modification time does not show that a
// file has not been modified since: the times are compared in whole seconds.
const coarseTime = 2 * time.Second

// Recent reports whether a later change of an open file could have the same
// modification time, in whole seconds. It uses the local clock, because that of the
// service may be ahead.
func Recent(modified time.Time) bool { return time.Since(modified) < coarseTime }

// Likeness is the result of a comparison of a file with an object, before the file is
// read.
type Likeness int

// The results of a comparison.
const (
	Differs    Likeness = iota
	SameTime            // the times show that the file is the one that was uploaded
	MaybeEqual          // the checksums must be compared
)

// CompareSize compares only the size of a file with an object. zipped reports whether
// the file would be compressed. No file is equal to an object if only one of the two is
// compressed.
func CompareSize(zipped bool, size int64, o *session.Object) Likeness {
	stored := o.Size
	if zipped {
		stored = o.UncompressedSize
	}
	if o.Gzip != zipped || stored != size {
		return Differs
	}
	return MaybeEqual
}

// CompareTime compares the size and the times of a file with an object.
func CompareTime(zipped bool, size int64, modified time.Time, o *session.Object) Likeness {
	switch {
	case CompareSize(zipped, size, o) == Differs:
		return Differs
	case o.FileModTime.IsZero() || o.Created.Sub(modified) < coarseTime:
		return MaybeEqual
	case o.FileModTime.Unix() == modified.Unix():
		return SameTime
	}
	return Differs
}
