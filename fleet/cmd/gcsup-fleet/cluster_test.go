package main

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"gcsup/internal/cli/exit"
	"gcsup/internal/require"
)

// startCluster starts three NATS servers.
func startCluster(t *testing.T) (servers []*server.Server, urls string) {
	t.Helper()
	var clients []string
	var routes []*url.URL
	ports := [3]int{unusedPort(t), unusedPort(t), unusedPort(t)}
	for _, port := range ports {
		routes = append(routes, &url.URL{Scheme: "nats-route", Host: fmt.Sprintf("127.0.0.1:%d", port)})
	}
	for i, port := range ports {
		client := unusedPort(t)
		clients = append(clients, fmt.Sprintf("nats://127.0.0.1:%d", client))
		servers = append(servers, serveNATS(t, client, &server.Options{
			ServerName: fmt.Sprint("n", i), Routes: routes,
			Cluster: server.ClusterOpts{Name: "c", Host: "127.0.0.1", Port: port, NoAdvertise: true},
		}))
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		ready := true
		for _, s := range servers {
			ready = ready && s.ReadyForConnections(time.Minute) && s.JetStreamIsCurrent() && len(s.JetStreamClusterPeers()) <= 3
		}
		leader := servers[0].JetStreamIsLeader() || servers[1].JetStreamIsLeader() || servers[2].JetStreamIsLeader()
		if ready && leader {
			return servers, strings.Join(clients, ",")
		}
		if time.Now().After(end) {
			t.Fatal("the cluster is not ready")
		}
	}
}

// TestReplicas checks that a cluster of three servers stores a new queue three times, that another number
// is an error later, and that a command ends in time if two of the servers are lost.
func TestReplicas(t *testing.T) {
	servers, urls := startCluster(t)
	flags := func(replicas int) *natsFlags {
		return &natsFlags{url: urls, fleet: "default", replicas: replicas, creates: true}
	}
	for _, replicas := range []int{0, 0, 3} {
		l, err := flags(replicas).open(t.Context(), stdio{err: t.Output()})
		require.NoError(t, err)
		js, err := jetstream.New(l.conn)
		require.NoError(t, err)
		for _, name := range []string{"gcsup-default", "KV_gcsup-default-records", "KV_gcsup-default-workers"} {
			if s, err := js.Stream(t.Context(), name); err != nil || s.CachedInfo().Config.Replicas != 3 {
				t.Errorf("%s with the flag %d: %+v, %v, want 3 replicas", name, replicas, s.CachedInfo().Config, err)
			}
		}
		l.close()
	}
	if _, err := flags(1).open(t.Context(), stdio{err: t.Output()}); exitCodeOf(err) != exit.Config || !strings.Contains(err.Error(), "has 3, not 1") {
		t.Errorf("another number of replicas: %v, want exit code %d", err, exit.Config)
	}
	for _, s := range servers[1:] {
		s.Shutdown()
		s.WaitForShutdown()
	}
	defer func(before time.Duration) { openFor = before }(openFor)
	openFor = 5 * time.Second
	began := time.Now()
	code, _, messages := here(t, "status", "--nats", urls)
	if took := time.Since(began); code != exit.Temporary || took > openFor+15*time.Second || !strings.Contains(messages, "NATS") {
		t.Errorf("status without a quorum: exit code %d after %v: %s", code, took, messages)
	}
}
