//go:build !windows

package screen

import "syscall"

var connErrors = []errorCause{
	{syscall.ECONNRESET, cause{"connection reset", "reset"}},
	{syscall.ECONNREFUSED, cause{"connection refused", "refused"}},
	{syscall.EPIPE, closed},
	{syscall.ENETUNREACH, cause{"no network", "no net"}},
	{syscall.EHOSTUNREACH, cause{"no network", "no net"}},
}
