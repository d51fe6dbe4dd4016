// Package congestion chooses the TCP congestion control of connections.
//
// cubic, the default of Linux, takes each lost packet for congestion. bbr does not, and is several times
// as fast over a link that loses packets: see docs/explain/performance.md.
//
// [Check] checks a name, and [Control] sets it for a [net.Dialer].
package congestion

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"syscall"
)

const (
	// Auto uses bbr for connections to other machines, if the system has and allows it.
	Auto = "auto"
	// System leaves the choice to the system. So does "".
	System = "system"

	best = "bbr"
)

// Check returns an error if connections cannot have the congestion control of a name. It makes no
// connection.
func Check(name string) error {
	if name == "" || name == System || name == Auto {
		return nil
	}
	if err := try(name); err != nil {
		return fmt.Errorf("congestion control %q: %w", name, err)
	}
	return nil
}

// Describe returns which congestion control connections with a name have, and for [Auto] without bbr what an
// administrator can do about it, or "".
func Describe(name string) (used, hint string) {
	switch name {
	case "", System:
		return "the system's", ""
	case Auto:
	default:
		return name, ""
	}
	switch err := try(best); {
	case err == nil:
		return best + ", except to this machine", ""
	case errors.Is(err, errMissing):
		return "the system's", "bbr is not loaded; it is faster over a link that loses packets: modprobe tcp_bbr"
	case errors.Is(err, errForbidden):
		return "the system's", "users may not use bbr, which is faster over a link that loses packets: sysctl -w net.ipv4.tcp_allowed_congestion_control=\"$(sysctl -n net.ipv4.tcp_allowed_congestion_control) bbr\""
	}
	return "the system's", ""
}

var (
	errMissing   = errors.New("the system does not have it, or has not loaded it; net.ipv4.tcp_available_congestion_control lists what there is")
	errForbidden = errors.New("the system does not allow it; net.ipv4.tcp_allowed_congestion_control lists what is allowed")
)

// Control returns the Control of a [net.Dialer]. It sets the congestion control of a name on each TCP socket before
// the socket connects, or fails with the error of [Check]. For [Auto], it never fails, and leaves connections to this
// machine alone, which lose no packets. Control returns nil if the system's choice stays.
func Control(name string) func(network, address string, c syscall.RawConn) error {
	refused := Check(name)
	switch name {
	case "", System:
		return nil
	case Auto:
		if try(best) != nil {
			return nil
		}
		return func(network, address string, c syscall.RawConn) error {
			if strings.HasPrefix(network, "tcp") && !local(address) {
				_ = set(c, best) // the connection works without it, too
			}
			return nil
		}
	}
	return func(network, _ string, c syscall.RawConn) error {
		if refused != nil || !strings.HasPrefix(network, "tcp") {
			return refused
		}
		return set(c, name)
	}
}

// local reports whether an address is one of this machine.
func local(address string) bool {
	a, err := netip.ParseAddrPort(address)
	return err == nil && a.Addr().Unmap().IsLoopback()
}
