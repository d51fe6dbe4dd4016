package congestion

import (
	"errors"
	"os"
	"slices"
	"strings"
	"syscall"
)

// available returns an error if the kernel has not loaded a congestion control. To set it would load its
// module, which is for the administrator to do.
func available(name string) error {
	names, err := os.ReadFile("/proc/sys/net/ipv4/tcp_available_congestion_control")
	if err != nil {
		return err
	}
	if !slices.Contains(strings.Fields(string(names)), name) {
		return errMissing
	}
	return nil
}

// try sets a congestion control on a socket that is not connected.
func try(name string) error {
	if err := available(name); err != nil {
		return err
	}
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if errors.Is(err, syscall.EAFNOSUPPORT) {
		fd, err = syscall.Socket(syscall.AF_INET6, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	}
	if err != nil {
		return os.NewSyscallError("socket", err)
	}
	defer syscall.Close(fd)
	return setFD(fd, name)
}

// set sets the congestion control of a socket.
func set(c syscall.RawConn, name string) error {
	var failed error
	if err := c.Control(func(fd uintptr) { failed = setFD(int(fd), name) }); err != nil {
		return err
	}
	return failed
}

func setFD(fd int, name string) error {
	switch err := syscall.SetsockoptString(fd, syscall.IPPROTO_TCP, syscall.TCP_CONGESTION, name); err {
	case nil:
		return nil
	case syscall.EPERM:
		return errForbidden
	case syscall.ENOENT:
		return errMissing
	default:
		return os.NewSyscallError("setsockopt", err)
	}
}
