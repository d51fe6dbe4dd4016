//go:build !linux

package badlink

import (
	"errors"
	"net/netip"
	"os/exec"
)

var errLinux = errors.New("a test network needs the network namespaces of Linux")

// Net is a network of a client and a server, with a router between them.
type Net struct{ *Router }

// Open fails: a network needs Linux.
func Open(Conditions, string) (*Net, error) { return nil, errLinux }

// StartServer fails.
func (n *Net) StartServer(*exec.Cmd) error { return errLinux }

// StartClient fails.
func (n *Net) StartClient(*exec.Cmd, string) error { return errLinux }

// Servers returns nil.
func (n *Net) Servers() []netip.Addr { return nil }

// MoveClient fails.
func (n *Net) MoveClient() error { return errLinux }

// Close fails.
func (n *Net) Close() error { return errLinux }
