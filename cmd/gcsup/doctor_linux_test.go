package main

import (
	"fmt"
	"testing"

	"golang.org/x/sys/unix"

	"gcsup/internal/require"
)

// TestDoctorDroppedPackets checks that doctor names the cause if packets to the endpoint are dropped.
// Linux drops those to a listener whose queue is full.
func TestDoctorDroppedPackets(t *testing.T) {
	t.Parallel() // it mostly waits
	socket := func() int {
		t.Helper()
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		require.NoError(t, err)
		t.Cleanup(func() { _ = unix.Close(fd) })
		return fd
	}
	full := socket()
	require.NoError(t, unix.Bind(full, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	require.NoError(t, unix.Listen(full, 0))
	addr, err := unix.Getsockname(full)
	require.NoError(t, err)
	for range 4 {
		_ = unix.Connect(socket(), addr) // EINPROGRESS
	}
	host := fmt.Sprintf("127.0.0.1:%d", addr.(*unix.SockaddrInet4).Port)
	testSilent(t, "http://"+host, host+" does not accept the connection; a firewall, a route or a VPN may drop the packets: ")
}
