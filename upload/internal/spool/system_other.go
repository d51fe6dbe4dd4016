//go:build !unix

package spool

import (
	"errors"
	"syscall"
)

// Error numbers of Windows.
const (
	errorHandleDiskFull = syscall.Errno(39)
	errorDiskFull       = syscall.Errno(112)
)

// full reports whether err means that there is no space for more bytes.
func full(err error) bool {
	return errors.Is(err, errorHandleDiskFull) || errors.Is(err, errorDiskFull)
}
