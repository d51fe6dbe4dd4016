package badlink

import (
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"time"
)

// The addresses of all networks. They are in namespaces, and therefore do not collide.
var (
	subnet      = netip.MustParsePrefix("10.77.0.0/16")
	clientAddr  = netip.MustParseAddr("10.77.0.2") // MoveClient takes the next ones
	serverAddrs = []netip.Addr{netip.MustParseAddr("10.77.1.1"), netip.MustParseAddr("10.77.1.2")}
)

// Net is a network of a client and a server, with a router between them.
type Net struct {
	*Router
	client, server *namespace
	address        netip.Addr // of the client
}

// Open makes a network whose connections have a congestion control, such as "cubic". With "", a connection has
// the one that it chooses.
func Open(c Conditions, congestion string) (*Net, error) {
	client, err := newNamespace(congestion, clientAddr)
	if err != nil {
		return nil, fmt.Errorf("namespace of the client: %w", err)
	}
	server, err := newNamespace(congestion, serverAddrs...)
	if err != nil {
		return nil, fmt.Errorf("namespace of the server: %w", errors.Join(err, client.file.Close(), client.device.Close()))
	}
	r := newRouter(client.device, server.device, c, uint64(time.Now().UnixNano()))
	return &Net{Router: r, client: client, server: server, address: clientAddr}, nil
}

// StartServer starts a process in the namespace of the server.
func (n *Net) StartServer(c *exec.Cmd) error { return n.server.inside(c.Start) }

// StartClient starts a process in the namespace of the client. The file hosts is its
// /etc/hosts.
func (n *Net) StartClient(c *exec.Cmd, hosts string) error {
	return n.client.inside(func() error {
		if err := mountHosts(hosts); err != nil {
			return err
		}
		return c.Start()
	})
}

// Servers returns the addresses of the server.
func (n *Net) Servers() []netip.Addr { return serverAddrs }

// MoveClient gives the client another address. The kernel does not close the connections
// of the old one. It must not be called by several goroutines at a time.
func (n *Net) MoveClient() error {
	n.address = n.address.Next()
	return n.client.inside(func() error { return n.client.address([]netip.Addr{n.address}) })
}

// Close stops the router, and releases the namespaces.
func (n *Net) Close() error {
	return errors.Join(n.close(), n.client.file.Close(), n.server.file.Close())
}
