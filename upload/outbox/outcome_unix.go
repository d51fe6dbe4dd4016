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

// badName reports whether a file cannot have a name, or the directories above it.
func badName(err error) bool {
	return errors.Is(err, syscall.ENAMETOOLONG) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.EISDIR) || errors.Is(err, syscall.ELOOP)
}

// noSpace reports whether a file system, or the quota of the user, has no space.
func noSpace(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// exhausted reports whether the process, or the system, has no descriptor or memory left.
func exhausted(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ENOMEM)
}

// otherFileSystem reports whether a file could not be renamed because the file system of the new
// name is another one.
func otherFileSystem(err error) bool { return errors.Is(err, syscall.EXDEV) }
