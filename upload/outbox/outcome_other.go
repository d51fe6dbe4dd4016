//go:build !unix

package outbox

import (
	"errors"
	"syscall"
)

// openForWriting returns false: the system does not tell.
func openForWriting(error) bool { return false }

// notDirectory returns false: a missing directory is like a missing file.
func notDirectory(error) bool { return false }

// notSameDevice is ERROR_NOT_SAME_DEVICE of Windows.
const notSameDevice = syscall.Errno(17)

// otherFileSystem reports whether a file could not be renamed because the file system of the new
// name is another one.
func otherFileSystem(err error) bool { return errors.Is(err, notSameDevice) }
