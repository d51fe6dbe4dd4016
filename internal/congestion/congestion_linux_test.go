package congestion

import (
	"net"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"gcsup/internal/require"
)

// of returns the congestion control of a connection.
func of(t *testing.T, c net.Conn) string {
	t.Helper()
	raw, err := c.(*net.TCPConn).SyscallConn()
	require.NoError(t, err)
	var name [16]byte
	size := uint32(len(name))
	var errno syscall.Errno
	if err := raw.Control(func(fd uintptr) {
		_, _, errno = syscall.Syscall6(syscall.SYS_GETSOCKOPT, fd, syscall.IPPROTO_TCP, syscall.TCP_CONGESTION,
			uintptr(unsafe.Pointer(&name)), uintptr(unsafe.Pointer(&size)), 0)
	}); err != nil || errno != 0 {
		t.Fatal(err, errno)
	}
	return strings.TrimRight(string(name[:size]), "\x00")
}

// connect connects to this machine with the congestion control of a name.
func connect(t *testing.T, name string) (net.Conn, error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	c, err := (&net.Dialer{Control: Control(name)}).Dial("tcp", l.Addr().String())
	if err == nil {
		t.Cleanup(func() { _ = c.Close() })
	}
	return c, err
}

// TestControl checks which congestion control a connection has. reno is part of each kernel.
func TestControl(t *testing.T) {
	plain, err := connect(t, "")
	require.NoError(t, err)
	system := of(t, plain)
	for name, want := range map[string]string{System: system, Auto: system, "reno": "reno"} {
		c, err := connect(t, name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := of(t, c); got != want {
			t.Errorf("%q connects to this machine with %s, want %s", name, got, want)
		}
		if err := Check(name); err != nil {
			t.Error(err)
		}
	}
	if _, err := connect(t, "nosuch"); err == nil || !strings.Contains(err.Error(), "nosuch") {
		t.Errorf("connected with a congestion control that does not exist: %v", err)
	}
	if err := Check("nosuch"); err == nil || !strings.Contains(err.Error(), "tcp_available_congestion_control") {
		t.Errorf("Check(nosuch) = %v", err)
	}
}

// TestAuto checks that auto uses bbr for another machine if, and only if, it works here.
func TestAuto(t *testing.T) {
	works := try(best) == nil
	control := Control(Auto)
	if (control != nil) != works {
		t.Fatalf("bbr works: %t, but Control returned a function: %t", works, control != nil)
	}
	used, hint := Describe(Auto)
	if want := map[bool]string{true: best + ", except to this machine", false: "the system's"}[works]; used != want || (hint == "") != works {
		t.Errorf("Describe = %q, %q, want %q", used, hint, want)
	}
	if !works {
		return
	}
	c, err := connect(t, "reno")
	require.NoError(t, err)
	raw, err := c.(*net.TCPConn).SyscallConn()
	require.NoError(t, err)
	for _, tt := range []struct{ network, address, want string }{
		{"tcp4", "127.0.0.1:443", "reno"},
		{"tcp6", "[::1]:443", "reno"},
		{"udp4", "192.0.2.1:443", "reno"},
		{"tcp4", "192.0.2.1:443", best},
	} {
		require.NoError(t, control(tt.network, tt.address, raw))
		if got := of(t, c); got != tt.want {
			t.Errorf("%s to %s has %s, want %s", tt.network, tt.address, got, tt.want)
		}
	}
}
