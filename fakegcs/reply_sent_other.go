//go:build !linux

package fakegcs

import "syscall"

// unacknowledged returns 0: the length of a socket's send queue is not known on this system.
func unacknowledged(syscall.RawConn) int { return 0 }
