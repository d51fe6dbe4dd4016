package fakegcs

import (
	"syscall"
	"unsafe"
)

// unacknowledged returns the length of the send queue of a TCP socket (SIOCOUTQ, tcp(7)), or 0 if
// it is unknown.
func unacknowledged(raw syscall.RawConn) int {
	var n int32
	err := raw.Control(func(fd uintptr) {
		if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, fd, syscall.TIOCOUTQ, uintptr(unsafe.Pointer(&n))); errno != 0 {
			n = 0
		}
	})
	if err != nil {
		return 0
	}
	return int(n)
}
