//go:build unix

package sourcefile

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// fileClock returns the system's time, because the clock of package time is
// fake in a test with testing/synctest, and file times are not.
func fileClock() int64 {
	var tv syscall.Timeval
	if err := syscall.Gettimeofday(&tv); err != nil {
		return time.Now().UnixNano()
	}
	return tv.Nano()
}

// writeBack calls fsync(2). On macOS, [os.File.Sync] would also flush the cache
// of the drive, which is slow and not needed.
func writeBack(f *os.File) error {
	c, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var errno error
	err = c.Control(func(fd uintptr) {
		for errno = syscall.EINTR; errno == syscall.EINTR; {
			errno = syscall.Fsync(int(fd))
		}
	})
	if err == nil {
		err = errno
	}
	return err
}

// refused reports whether err means that the file system does not support fsync
// for a file that is open for reading.
func refused(err error) bool {
	return errors.Is(err, errors.ErrUnsupported) || errors.Is(err, fs.ErrPermission) ||
		errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.EROFS)
}
