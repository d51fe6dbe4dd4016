package memnet

import (
	"runtime"
	"syscall"
)

// The errors of a socket. Windows does not return the E constants of package
// syscall.
var errRefused, errReset, errPipe = socketErrors()

func socketErrors() (refused, reset, pipe syscall.Errno) {
	if runtime.GOOS == "windows" {
		return 10061, 10054, 10053 // WSAECONNREFUSED, WSAECONNRESET, WSAECONNABORTED
	}
	return syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.EPIPE
}
