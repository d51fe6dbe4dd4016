package tree

import (
	"fmt"
	"io/fs"
)

// checkLimits returns an error if no file can be within the limits.
func (o *Options) checkLimits() error {
	switch {
	case o.MinSize < 0 || o.MaxSize != nil && *o.MaxSize < 0:
		return fmt.Errorf("%w: a limit of sizes is negative", ErrUsage)
	case o.MaxSize != nil && *o.MaxSize < o.MinSize:
		return fmt.Errorf("%w: no file has at least %d and at most %d bytes", ErrUsage, o.MinSize, *o.MaxSize)
	case !o.ModifiedTo.IsZero() && o.ModifiedTo.Before(o.ModifiedFrom):
		return fmt.Errorf("%w: no file was modified both after %v and before %v", ErrUsage, o.ModifiedFrom, o.ModifiedTo)
	}
	return nil
}

// leaveOut returns why a file is left out, or nil if it is not. info and err are the outcome of its
// inspection.
func (o *Options) leaveOut(info fs.FileInfo, err error) error {
	switch {
	case err == errGone:
		return errVanished
	case err == errIgnored:
		return notFollowed(Link, "it is ignored")
	case !o.within(info):
		return leftOut(LeftOut, "its size or time is not within the limits")
	}
	return nil
}

// within reports whether the size and the modification time of a file are within the
// limits. They do not apply to what is not a regular file, and to a file that could
// not be inspected, for which info is nil.
func (o *Options) within(info fs.FileInfo) bool {
	if info == nil || !info.Mode().IsRegular() {
		return true
	}
	size, modified := info.Size(), info.ModTime()
	return size >= o.MinSize && (o.MaxSize == nil || size <= *o.MaxSize) &&
		!modified.Before(o.ModifiedFrom) && (o.ModifiedTo.IsZero() || !modified.After(o.ModifiedTo))
}
