package chunk

import (
	"fmt"
	"os"
	"syscall"
)

// denyWriters returns ETXTBSY if a process has the file open for writing. Otherwise a process
// that opens it for writing waits until f is closed. It does nothing if the file system or
// the owner of the file does not allow a lease.
//
// https://man7.org/linux/man-pages/man2/F_SETLEASE.2const.html
func denyWriters(f *os.File) error {
	c, err := f.SyscallConn()
	if err != nil {
		return err
	}
	errno := syscall.Errno(0)
	err = c.Control(func(fd uintptr) {
		// The signal to the holder of a lease. By default this one is ignored, and SIGIO is not.
		_, _, _ = syscall.Syscall(syscall.SYS_FCNTL, fd, syscall.F_SETSIG, uintptr(syscall.SIGURG))
		_, _, errno = syscall.Syscall(syscall.SYS_FCNTL, fd, syscall.F_SETLEASE, syscall.F_RDLCK)
	})
	if err == nil && errno == syscall.EAGAIN {
		err = fmt.Errorf("a process has it open for writing: %w", syscall.ETXTBSY)
	}
	return err
}
