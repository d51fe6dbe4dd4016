//go:build linux

package fire_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gcsup/internal/require"
	"gcsup/internal/testprocess"
	"gcsup/internal/testsize"
)

// cluster is one or three NATS servers.
type cluster struct {
	t     *testing.T
	dir   string
	nodes []*node
}

// node is one of the servers.
type node struct {
	name, host, dir string
	config          string
	disk            *disk // that has dir; nil if it is an ordinary directory
	process         *testprocess.Process
}

const (
	clientPort  = "4222"
	clusterPort = "6222"
	monitorPort = "8222"
)

func (n *node) addr() string { return n.host + ":" + clientPort }

// urls returns the URLs of the servers for a client.
func (c *cluster) urls() string {
	var urls []string
	for _, n := range c.nodes {
		urls = append(urls, "nats://"+n.addr())
	}
	return strings.Join(urls, ",")
}

// strangerLogin is the login of a user of NATS that may do nothing. Clients without a login may do
// everything.
const strangerLogin = "stranger:x"

// startCluster starts n servers. makeDisk makes the disk of each; it may be nil.
func startCluster(t *testing.T, n int, makeDisk func(dir string) *disk) *cluster {
	t.Helper()
	c := newCluster(t, n)
	var routes []string
	for _, n := range c.nodes {
		routes = append(routes, fmt.Sprintf("nats-route://%s:%s", n.host, clusterPort))
		if makeDisk != nil {
			n.disk = makeDisk(n.dir)
		}
	}
	for _, n := range c.nodes {
		// Clients must use only the given addresses, which are those of the links.
		n.config = fmt.Sprintf(`
server_name: %s
listen: "%s:%s"
http: "%s:%s"
jetstream { store_dir: %q, sync_interval: always, max_memory_store: 64MB, max_file_store: 1GB }
authorization { users: [ { user: fleet, password: x }, { user: stranger, password: x, permissions: { publish: { deny: [">"] } } } ] }
no_auth_user: fleet
`, n.name, n.host, clientPort, n.host, monitorPort, n.dir)
		if len(c.nodes) > 1 {
			n.config += fmt.Sprintf(`cluster { name: fire, listen: "%s:%s", no_advertise: true, routes: [%s] }
`, n.host, clusterPort, strings.Join(routes, ", "))
		}
	}
	c.startAll()
	return c
}

// newCluster returns servers that are not started.
func newCluster(t *testing.T, n int) *cluster {
	c := &cluster{t: t, dir: testsize.MemDir(t)} // after SIGKILL it is as on a disk
	for i := range n {
		name := fmt.Sprintf("n%d", i+1)
		c.nodes = append(c.nodes, &node{name: name, host: loopback(), dir: filepath.Join(c.dir, name)})
	}
	return c
}

// startAll starts the servers.
func (c *cluster) startAll() {
	c.t.Helper()
	for _, n := range c.nodes {
		require.NoError(c.t, os.WriteFile(n.dir+".conf", []byte(n.config), 0o600))
		c.start(n)
	}
	c.ready()
}

func (c *cluster) start(n *node) {
	c.t.Helper()
	if n.process != nil {
		n.process.Kill()
	}
	program, args := n.disk.inside("/", natsServer, "-c", n.dir+".conf")
	n.process = start(c.t, nil, program, args...)
}

// ready waits until the servers have elected a leader.
func (c *cluster) ready() {
	c.t.Helper()
	if !poll(200*time.Millisecond, time.Minute, func() bool {
		for _, n := range c.nodes {
			var health struct{ Status string }
			if n.get("healthz", &health) != nil || health.Status != "ok" {
				return false
			}
		}
		var js struct {
			Meta struct{ Leader string } `json:"meta_cluster"`
		}
		return c.nodes[0].get("jsz", &js) == nil && (js.Meta.Leader != "" || len(c.nodes) == 1)
	}) {
		for _, n := range c.nodes {
			c.t.Log(n.process.Stderr())
		}
		c.t.Fatal("the NATS cluster is not ready after a minute")
	}
}

// get reads a page of the monitoring endpoint of a server.
func (n *node) get(page string, into any) error {
	client := http.Client{Timeout: 2 * time.Second}
	resp, err := client.Get("http://" + n.host + ":" + monitorPort + "/" + page)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return errors.New(resp.Status)
	}
	return json.NewDecoder(resp.Body).Decode(into)
}

// leader returns the server that leads the stream of tasks; nil if there is none. A single server
// leads it.
func (c *cluster) leader() *node {
	if len(c.nodes) == 1 {
		return c.nodes[0]
	}
	var js struct {
		Accounts []struct {
			Streams []struct {
				Name    string
				Cluster struct{ Leader string }
			} `json:"stream_detail"`
		} `json:"account_details"`
	}
	for _, n := range c.nodes {
		if n.process.Alive() && n.get("jsz?accounts=true&streams=true", &js) == nil {
			break
		}
	}
	for _, a := range js.Accounts {
		for _, s := range a.Streams {
			for _, n := range c.nodes {
				if s.Name == "gcsup-default" && n.name == s.Cluster.Leader {
					return n
				}
			}
		}
	}
	return nil
}

// wipe kills all servers, deletes their data, and starts them again.
func (c *cluster) wipe() {
	c.t.Helper()
	for _, n := range c.nodes {
		n.process.Kill()
		entries, err := os.ReadDir(n.disk.path(n.dir))
		for _, e := range entries {
			err = errors.Join(err, os.RemoveAll(filepath.Join(n.disk.path(n.dir), e.Name())))
		}
		require.NoError(c.t, err)
	}
	for _, n := range c.nodes {
		c.start(n)
	}
	c.ready()
}
