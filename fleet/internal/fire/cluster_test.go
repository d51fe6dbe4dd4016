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
)

// cluster is three NATS servers.
type cluster struct {
	t     *testing.T
	dir   string
	nodes []*node
}

// node is one of the servers.
type node struct {
	name, host, dir string
	config          string
	process         *process
}

const (
	clientPort  = "4222"
	clusterPort = "6222"
	monitorPort = "8222"
)

func (n *node) addr() string { return n.host + ":" + clientPort }

func startCluster(t *testing.T) *cluster {
	t.Helper()
	c := newCluster(t)
	var routes []string
	for _, n := range c.nodes {
		routes = append(routes, fmt.Sprintf("nats-route://%s:%s", n.host, clusterPort))
	}
	for _, n := range c.nodes {
		// Clients must use only the given addresses, which are those of the links.
		n.config = fmt.Sprintf(`
server_name: %s
listen: "%s:%s"
http: "%s:%s"
jetstream { store_dir: %q, sync_interval: always, max_memory_store: 64MB, max_file_store: 1GB }
cluster { name: fire, listen: "%s:%s", no_advertise: true, routes: [%s] }
`, n.name, n.host, clientPort, n.host, monitorPort, n.dir, n.host, clusterPort, strings.Join(routes, ", "))
	}
	c.startAll()
	return c
}

// newCluster returns three servers that are not started.
func newCluster(t *testing.T) *cluster {
	c := &cluster{t: t, dir: t.TempDir()}
	for i := range 3 {
		name := fmt.Sprintf("n%d", i+1)
		c.nodes = append(c.nodes, &node{name: name, host: loopback(), dir: filepath.Join(c.dir, name)})
	}
	return c
}

// startAll starts the servers.
func (c *cluster) startAll() {
	c.t.Helper()
	for _, n := range c.nodes {
		if err := os.WriteFile(n.dir+".conf", []byte(n.config), 0o600); err != nil {
			c.t.Fatal(err)
		}
		c.start(n)
	}
	c.ready()
}

func (c *cluster) start(n *node) {
	c.t.Helper()
	n.process = start(c.t, nil, natsServer, "-c", n.dir+".conf")
}

// ready waits until the servers have elected a leader.
func (c *cluster) ready() {
	c.t.Helper()
	if !await(time.Minute, func() bool {
		for _, n := range c.nodes {
			var health struct{ Status string }
			if n.get("healthz", &health) != nil || health.Status != "ok" {
				return false
			}
		}
		var js struct {
			Meta struct{ Leader string } `json:"meta_cluster"`
		}
		return c.nodes[0].get("jsz", &js) == nil && js.Meta.Leader != ""
	}) {
		for _, n := range c.nodes {
			c.t.Log(n.process.stderr())
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

// leader returns the server that leads the stream of tasks; nil if there is none.
func (c *cluster) leader() *node {
	var js struct {
		Accounts []struct {
			Streams []struct {
				Name    string
				Cluster struct{ Leader string }
			} `json:"stream_detail"`
		} `json:"account_details"`
	}
	for _, n := range c.nodes {
		if n.process.alive() && n.get("jsz?accounts=true&streams=true", &js) == nil {
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
		n.process.kill()
		if err := os.RemoveAll(n.dir); err != nil {
			c.t.Fatal(err)
		}
	}
	for _, n := range c.nodes {
		c.start(n)
	}
	c.ready()
}
