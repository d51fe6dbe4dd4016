package netconn

import (
	"syscall"
	"unsafe"
)

// unacknowledged returns the length of the send queue of a TCP socket (SIOCOUTQ, tcp(7)).
func unacknowledged(raw syscall.RawConn) (n int64, ok bool) {
	var queue int32
	err := raw.Control(func(fd uintptr) {
		_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, fd, syscall.TIOCOUTQ, uintptr(unsafe.Pointer(&queue)))
		ok = errno == 0
	})
	return int64(queue), ok && err == nil
}
