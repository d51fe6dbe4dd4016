//go:build !linux

package netconn

import "syscall"

func unacknowledged(syscall.RawConn) (n int64, ok bool) { return 0, false }
