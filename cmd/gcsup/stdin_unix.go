//go:build unix

package main

import (
	"os"
	"syscall"
)

// closedAtStart reports whether f, a standard stream, was closed when this program
// started. Go's runtime replaces such a stream by /dev/null, open for reading and
// writing (https://github.com/golang/go/blob/master/src/runtime/fds_unix.go). A
// shell opens </dev/null for reading only.
func closedAtStart(f *os.File) bool {
	info, err := f.Stat()
	if err != nil {
		return false
	}
	null, err := os.Stat(os.DevNull)
	if err != nil || !os.SameFile(info, null) {
		return false
	}
	_, err = syscall.Write(int(f.Fd()), nil) // EBADF unless it is open for writing
	return err == nil
}
