//go:build !windows

package backoff

import "syscall"

// brokenErrno lists the system's errors for a closed connection, an unreachable
// network, and a machine or process that is short of a resource. EADDRNOTAVAIL
// means that the machine has lost its address.
var brokenErrno = []error{
	syscall.EADDRNOTAVAIL,
	syscall.ECONNABORTED,
	syscall.ECONNREFUSED,
	syscall.ECONNRESET,
	syscall.EHOSTDOWN,
	syscall.EHOSTUNREACH,
	syscall.EMFILE,
	syscall.ENETDOWN,
	syscall.ENETRESET,
	syscall.ENETUNREACH,
	syscall.ENFILE,
	syscall.ENOBUFS,
	syscall.ENOMEM,
	syscall.ENOTCONN,
	syscall.EPIPE,
	syscall.ETIMEDOUT,
}
