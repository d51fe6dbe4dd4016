//go:build !windows

package backoff

import "syscall"

// brokenErrno are the system's errors for a connection that is closed, a network
// that is not there, and a machine or process that is short of something. With
// EADDRNOTAVAIL the machine has lost its address.
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
