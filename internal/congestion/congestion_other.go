//go:build !linux

package congestion

import "syscall"

func available(string) error { return errUnsupported }

func try(string) error { return errUnsupported }

func set(syscall.RawConn, string) error { return errUnsupported }
