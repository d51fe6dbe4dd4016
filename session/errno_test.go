package session_test

import (
	"runtime"
	"syscall"
)

// Errors of the system. Windows does not return the E constants of package
// syscall.
var connReset, connRefused, noFilesLeft = systemErrors()

func systemErrors() (reset, refused, noFiles syscall.Errno) {
	if runtime.GOOS == "windows" {
		return 10054, 10061, 10024 // WSAECONNRESET, WSAECONNREFUSED, WSAEMFILE
	}
	return syscall.ECONNRESET, syscall.ECONNREFUSED, syscall.EMFILE
}
