//go:build !linux

package congestion

import (
	"errors"
	"syscall"
)

// errUnsupported is the error of a system on which a connection cannot choose.
var errUnsupported = errors.New("this system does not let a program choose it")

func try(string) error { return errUnsupported }

func set(syscall.RawConn, string) error { return errUnsupported }
