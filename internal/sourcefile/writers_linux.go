package sourcefile

import (
	"fmt"
	"os"
	"syscall"
)

// denyWriters returns ETXTBSY if a process has the file open for writing. Otherwise a process
// that opens it for writing waits until f is closed. It does nothing if the file system or
// the owner of the file does not allow a lease.
func denyWriters(f *os.File) error {
	errno, err := lease(f)
	if err == nil && errno == syscall.EAGAIN {
		err = fmt.Errorf("a process has it open for writing: %w", syscall.ETXTBSY)
	}
	return err
}

// allowWriters ends the lease of denyWriters: a process that waits for it continues.
func allowWriters(f *os.File) {
	if c, err := f.SyscallConn(); err == nil {
		_ = c.Control(func(fd uintptr) {
			_, _, _ = syscall.Syscall(syscall.SYS_FCNTL, fd, syscall.F_SETLEASE, syscall.F_UNLCK)
		})
	}
}

// findWriters reports whether a process has the file open for writing. Until f is closed, a
// process that opens it for writing waits.
func findWriters(f *os.File) Writers {
	switch errno, err := lease(f); {
	case err != nil:
		return WritersUnknown
	case errno == 0:
		return NoWriters
	case errno == syscall.EAGAIN:
		return HasWriters
	}
	return WritersUnknown
}

// lease gets a read lease on the file, which ends when f is closed. The error number is EAGAIN if a
// process has the file open for writing.
//
// https://man7.org/linux/man-pages/man2/F_SETLEASE.2const.html
func lease(f *os.File) (syscall.Errno, error) {
	c, err := f.SyscallConn()
	if err != nil {
		return 0, err
	}
	errno := syscall.Errno(0)
	err = c.Control(func(fd uintptr) {
		// The signal to the holder of a lease. By default this one is ignored, and SIGIO is not.
		_, _, _ = syscall.Syscall(syscall.SYS_FCNTL, fd, syscall.F_SETSIG, uintptr(syscall.SIGURG))
		_, _, errno = syscall.Syscall(syscall.SYS_FCNTL, fd, syscall.F_SETLEASE, syscall.F_RDLCK)
	})
	return errno, err
}
