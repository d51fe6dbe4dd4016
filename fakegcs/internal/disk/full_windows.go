package disk

import (
	"errors"
	"syscall"
)

// ERROR_HANDLE_DISK_FULL, ERROR_DISK_FULL and ERROR_DISK_QUOTA_EXCEEDED, which package syscall
// does not define.
const (
	errHandleDiskFull = syscall.Errno(39)
	errDiskFull       = syscall.Errno(112)
	errDiskQuota      = syscall.Errno(1295)
)

// Full reports whether err is that of a file system without space, or of a quota.
func Full(err error) bool {
	return errors.Is(err, errHandleDiskFull) || errors.Is(err, errDiskFull) || errors.Is(err, errDiskQuota)
}
