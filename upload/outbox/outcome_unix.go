//go:build unix

package outbox

import (
	"errors"
	"syscall"
)

// openForWriting reports whether a file was not disposed of because a process writes to it.
func openForWriting(err error) bool { return errors.Is(err, syscall.ETXTBSY) }

// notDirectory reports whether a directory above a file is not one any more.
func notDirectory(err error) bool { return errors.Is(err, syscall.ENOTDIR) }

// otherFileSystem reports whether a file could not be renamed because the file system of the new
// name is another one.
func otherFileSystem(err error) bool { return errors.Is(err, syscall.EXDEV) }
