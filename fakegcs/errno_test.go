package fakegcs_test

import (
	"runtime"
	"syscall"
)

// The errors of a socket. Windows does not return the E constants of package
// syscall.
var connReset, brokenPipe = socketErrors()

func socketErrors() (reset, pipe syscall.Errno) {
	if runtime.GOOS == "windows" {
		return 10054, 10053 // WSAECONNRESET, WSAECONNABORTED
	}
	return syscall.ECONNRESET, syscall.EPIPE
}
