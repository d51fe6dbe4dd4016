package emulator

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// listen listens on address. For an IPv4 address it listens on IPv4 only. For
// 0.0.0.0, package net would listen on IPv6 too, and report the IPv6 address.
func listen(address string) (net.Listener, error) {
	network := "tcp"
	host, _, err := net.SplitHostPort(address)
	if ip, parseErr := netip.ParseAddr(host); err == nil && parseErr == nil && ip.Is4() {
		network = "tcp4"
	}
	ln, err := net.Listen(network, address)
	if err != nil {
		return nil, fmt.Errorf("emulator: %w", err)
	}
	return ln, nil
}

// reachable returns an address that a client on this machine can use, if the listener
// listens on all addresses. It is an IPv6 address only if the user gave one.
func reachable(addr net.Addr, asked string) string {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok || !tcp.IP.IsUnspecified() {
		return addr.String()
	}
	loopback := "127.0.0.1"
	if host, _, err := net.SplitHostPort(asked); err == nil && strings.Contains(host, ":") {
		loopback = "::1"
	}
	return net.JoinHostPort(loopback, strconv.Itoa(tcp.Port))
}
