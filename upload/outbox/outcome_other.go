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

// Errors of Windows: ERROR_HANDLE_DISK_FULL, ERROR_DISK_FULL, ERROR_INVALID_NAME, ERROR_FILENAME_EXCED_RANGE and
// ERROR_DIRECTORY.
const (
	handleDiskFull = syscall.Errno(39)
	diskFull       = syscall.Errno(112)
	invalidName    = syscall.Errno(123)
	nameTooLong    = syscall.Errno(206)
	wrongDirectory = syscall.Errno(267)
)

// badName reports whether a file cannot have a name, or the directories above it.
func badName(err error) bool {
	return errors.Is(err, invalidName) || errors.Is(err, nameTooLong) || errors.Is(err, wrongDirectory) || errors.Is(err, syscall.ENOTDIR)
}

// noSpace reports whether a file system has no space.
func noSpace(err error) bool { return errors.Is(err, diskFull) || errors.Is(err, handleDiskFull) }

// exhausted reports whether the process has no handle left: ERROR_TOO_MANY_OPEN_FILES of Windows.
func exhausted(err error) bool { return errors.Is(err, syscall.Errno(4)) }

// notSameDevice is ERROR_NOT_SAME_DEVICE of Windows.
const notSameDevice = syscall.Errno(17)

// otherFileSystem reports whether a file could not be renamed because the file system of the new
// name is another one.
func otherFileSystem(err error) bool { return errors.Is(err, notSameDevice) }
