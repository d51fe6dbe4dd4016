package fleet

import (
	"errors"
	"fmt"
	"io/fs"
	"time"
)

// errStale means that the file of this worker is not the one that was submitted.
var errStale = errors.New("the file is not as it was submitted; --accept-changed uploads it as it is")

// kindStale is the class of errStale.
const kindStale = "stale_copy"

// stale returns an error that wraps errStale if a file has another size or modification time than
// when it was submitted. info describes the file.
func stale(f File, info fs.FileInfo) error {
	if f.same(info.Size(), info.ModTime().UnixNano()) {
		return nil
	}
	was, is := time.Unix(0, f.ModTimeNS).UTC(), info.ModTime().UTC()
	return &fs.PathError{Op: "upload", Path: f.Path, Err: fmt.Errorf("%w: it had %d bytes and the time %s, and has %d bytes and the time %s",
		errStale, f.Size, was.Format(time.RFC3339Nano), info.Size(), is.Format(time.RFC3339Nano))}
}

// same reports whether f was submitted with a size and modification time.
func (f File) same(size, modTimeNS int64) bool {
	return f.Size == size && sameTime(f.ModTimeNS, modTimeNS)
}

// sameTime reports whether two modification times are equal. A file system that stores times in
// larger units cuts them off.
func sameTime(a, b int64) bool {
	for _, unit := range []time.Duration{1, 100, time.Microsecond, time.Millisecond, time.Second, 2 * time.Second} {
		n := int64(unit)
		if a-mod(a, n) == b || b-mod(b, n) == a {
			return true
		}
	}
	return false
}

// mod returns the remainder of a / n that is not negative.
func mod(a, n int64) int64 { return (a%n + n) % n }
