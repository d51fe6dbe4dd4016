//go:build unix

package spool

import (
	"errors"
	"syscall"
)

// full reports whether err means that there is no space for more bytes.
func full(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}
