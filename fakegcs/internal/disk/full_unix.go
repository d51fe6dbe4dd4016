//go:build unix

package disk

import (
	"errors"
	"syscall"
)

// Full reports whether err is that of a file system without space, or of a quota.
func Full(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}
