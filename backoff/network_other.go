//go:build !windows

package backoff

import "syscall"

// brokenErrno is what the system says of a connection that is no more, or of a
// network that is not there. EADDRNOTAVAIL is a machine that has lost its
// address.
var brokenErrno = []error{
	syscall.EADDRNOTAVAIL,
	syscall.ECONNABORTED,
	syscall.ECONNREFUSED,
	syscall.ECONNRESET,
	syscall.EHOSTDOWN,
	syscall.EHOSTUNREACH,
	syscall.ENETDOWN,
	syscall.ENETRESET,
	syscall.ENETUNREACH,
	syscall.ENOTCONN,
	syscall.EPIPE,
	syscall.ETIMEDOUT,
}
