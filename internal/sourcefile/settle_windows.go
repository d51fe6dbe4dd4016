package sourcefile

import (
	"errors"
	"os"
	"syscall"
)

// fileClock returns the system's time, because the clock of package time is
// fake in a test with testing/synctest, and file times are not.
func fileClock() int64 {
	var t syscall.Filetime
	syscall.GetSystemTimeAsFileTime(&t)
	return t.Nanoseconds()
}

// writeBack is not supported: Windows flushes only files that are open for
// writing.
//
// https://learn.microsoft.com/en-us/windows/win32/api/fileapi/nf-fileapi-flushfilebuffers
func writeBack(*os.File) error { return errors.ErrUnsupported }

func refused(err error) bool { return errors.Is(err, errors.ErrUnsupported) }
