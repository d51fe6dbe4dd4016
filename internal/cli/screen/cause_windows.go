package screen

import "syscall"

// Package syscall names only some of these codes, see brokenErrno in package backoff.
var connErrors = []errorCause{
	{syscall.Errno(10054), cause{"connection reset", "reset"}},
	{syscall.Errno(10061), cause{"connection refused", "refused"}},
	{syscall.ERROR_BROKEN_PIPE, closed},
	{syscall.Errno(10053), closed}, // WSAECONNABORTED
	{syscall.Errno(10051), cause{"no network", "no net"}},
	{syscall.Errno(10065), cause{"no network", "no net"}},
	{syscall.Errno(10060), timeout},
}
