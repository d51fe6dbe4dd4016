package backoff

import "syscall"

// brokenErrno lists the system's errors for a closed connection, an unreachable
// network, and a machine or process that is short of a resource. Package
// syscall names only some of the codes of
// https://learn.microsoft.com/windows/win32/winsock/windows-sockets-error-codes-2.
// Windows does not return its E constants, such as ECONNREFUSED.
var brokenErrno = []error{
	syscall.ERROR_BROKEN_PIPE,
	syscall.ERROR_NETNAME_DELETED,
	syscall.Errno(4),     // ERROR_TOO_MANY_OPEN_FILES
	syscall.Errno(8),     // ERROR_NOT_ENOUGH_MEMORY
	syscall.Errno(10024), // WSAEMFILE
	syscall.Errno(10055), // WSAENOBUFS
	syscall.Errno(10049), // WSAEADDRNOTAVAIL: the machine has lost its address
	syscall.Errno(10050), // WSAENETDOWN
	syscall.Errno(10051), // WSAENETUNREACH
	syscall.Errno(10052), // WSAENETRESET
	syscall.Errno(10053), // WSAECONNABORTED
	syscall.Errno(10054), // WSAECONNRESET
	syscall.Errno(10057), // WSAENOTCONN
	syscall.Errno(10058), // WSAESHUTDOWN
	syscall.Errno(10060), // WSAETIMEDOUT
	syscall.Errno(10061), // WSAECONNREFUSED
	syscall.Errno(10064), // WSAEHOSTDOWN
	syscall.Errno(10065), // WSAEHOSTUNREACH
}
