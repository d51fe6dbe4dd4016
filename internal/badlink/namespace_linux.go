package badlink

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

const deviceName = "badlink"

// namespace is a network namespace with one TUN device.
type namespace struct {
	file       *os.File // keeps it alive
	device     *os.File // the packets that the kernel sends, and those that it receives
	congestion string   // the congestion control of its connections, whatever they choose; "" for their choice
}

// onThread runs f in a goroutine that has a thread of its own, which ends with it. f may
// therefore move the thread to another namespace.
func onThread(f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		done <- f()
	}()
	return <-done
}

// newNamespace makes a namespace whose device has addresses.
func newNamespace(congestion string, addrs ...netip.Addr) (*namespace, error) {
	n := &namespace{congestion: congestion}
	err := onThread(func() (err error) {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return os.NewSyscallError("unshare", err)
		}
		if n.file, err = os.Open("/proc/thread-self/ns/net"); err != nil {
			return err
		}
		if n.device, err = openTUN(); err != nil {
			return err
		}
		for name, value := range map[string]string{
			"ipv4/tcp_no_metrics_save":   "1", // a run must not depend on the one before
			"ipv6/conf/all/disable_ipv6": "1",
		} {
			if err := os.WriteFile("/proc/sys/net/"+name, []byte(value), 0); err != nil && !errors.Is(err, os.ErrNotExist) {
				return err
			}
		}
		// The queue is long enough for the moments in which the router does not run.
		for _, devices := range []string{"set lo up", "set dev " + deviceName + " txqueuelen 10000 up"} {
			if err := ip("link", devices); err != nil {
				return err
			}
		}
		return n.address(addrs)
	})
	if err != nil {
		for _, f := range []*os.File{n.file, n.device} {
			if f != nil {
				_ = f.Close()
			}
		}
		return nil, err
	}
	return n, nil
}

// openTUN makes the TUN device in the namespace of this thread.
func openTUN() (*os.File, error) {
	const path = "/dev/net/tun"
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w; load the kernel module tun, or create the file with: mknod %s c 10 200", path, err, path)
	}
	request, err := unix.NewIfreq(deviceName)
	if err == nil {
		request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
		err = os.NewSyscallError("ioctl TUNSETIFF", unix.IoctlIfreq(fd, unix.TUNSETIFF, request))
	}
	if err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	return os.NewFile(uintptr(fd), path), nil // it can be polled only now
}

// inside runs f on a thread in the namespace.
func (n *namespace) inside(f func() error) error {
	return onThread(func() error {
		if err := unix.Setns(int(n.file.Fd()), unix.CLONE_NEWNET); err != nil {
			return os.NewSyscallError("setns", err)
		}
		return f()
	})
}

// address gives the device other addresses. It must run inside. The congestion control is that of
// the route: the setting of a namespace allows only those that the machine allows to all
// users.
func (n *namespace) address(addrs []netip.Addr) error {
	if err := ip("address", "flush dev "+deviceName); err != nil {
		return err
	}
	for _, a := range addrs {
		if err := ip("address", fmt.Sprintf("add %v/%d dev %s noprefixroute", a, subnet.Bits(), deviceName)); err != nil {
			return err
		}
	}
	route := fmt.Sprintf("replace %v dev %s", subnet, deviceName)
	if n.congestion != "" {
		route += " congctl " + n.congestion
	}
	return ip("route", route)
}

// ip runs a command of iproute2 in the namespace of this thread.
func ip(object, arguments string) error {
	cmd := exec.Command("ip", append([]string{object}, strings.Fields(arguments)...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("ip %s %s: %w %s", object, arguments, err, out)
	}
	return nil
}

// mountHosts moves this thread to a mount namespace of its own, in which file is /etc/hosts.
func mountHosts(file string) error {
	if err := unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWNS); err != nil {
		return os.NewSyscallError("unshare", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make / private: %w", os.NewSyscallError("mount", err))
	}
	if err := unix.Mount(file, "/etc/hosts", "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("%s on /etc/hosts: %w", file, os.NewSyscallError("mount", err))
	}
	return nil
}
