//go:build !linux

package badlink

import (
	"errors"
	"net/netip"
	"os"
)

var errLinux = errors.New("a test network needs the network namespaces of Linux")

type namespace struct{ file, device *os.File }

func newNamespace(string, ...netip.Addr) (*namespace, error) { return nil, errLinux }

func (*namespace) inside(func() error) error { return errLinux }

func (*namespace) address([]netip.Addr) error { return errLinux }

func mountHosts(string) error { return errLinux }
