//go:build unix

package chunk

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// fileClock asks the system, because the times of files are real even if those of
// package time are not (testing/synctest).
func fileClock() int64 {
	var tv syscall.Timeval
	if err := syscall.Gettimeofday(&tv); err != nil {
		return time.Now().UnixNano()
	}
	return tv.Nano()
}

// writeBack is fsync(2). [os.File.Sync] also flushes the cache of the drive on
// macOS, which takes long and is of no use here.
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

// refused reports whether a file system has no fsync for a file that is open for
// reading.
func refused(err error) bool {
	return errors.Is(err, errors.ErrUnsupported) || errors.Is(err, fs.ErrPermission) ||
		errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.EROFS)
}
