//go:build linux

package fire_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gcsup/internal/require"
)

// TestDeployedNATS runs the cluster of deploy/nats.conf with the certificates of
// deploy/certs.sh. A worker and an operator can do their work, and the worker can do
// nothing else.
func TestDeployedNATS(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	certs := filepath.Join(c.dir, "certs")
	args := []string{"../../deploy/certs.sh", certs}
	for _, n := range c.nodes {
		args = append(args, "IP:"+n.host)
	}
	if out, err := exec.Command("sh", args...).CombinedOutput(); err != nil {
		t.Fatalf("certs.sh: %v\n%s", err, out)
	}
	example, err := os.ReadFile("../../deploy/nats.conf")
	require.NoError(t, err)
	for _, n := range c.nodes {
		n.config = replace(t, string(example), map[string]string{
			"$POD_NAME":               n.name,
			`"0.0.0.0:4222"`:          `"` + n.host + `:4222"`,
			`"0.0.0.0:6222"`:          `"` + n.host + `:6222"`,
			`"0.0.0.0:8222"`:          `"` + n.host + `:8222"`,
			`"/data"`:                 `"` + n.dir + `"`,
			"/etc/nats/tls/tls.crt":   certs + "/server.crt",
			"/etc/nats/tls/tls.key":   certs + "/server.key",
			"/etc/nats/tls/ca.crt":    certs + "/ca.crt",
			"gcsup-nats-0.gcsup-nats": c.nodes[0].host,
			"gcsup-nats-1.gcsup-nats": c.nodes[1].host,
			"gcsup-nats-2.gcsup-nats": c.nodes[2].host,
		})
	}
	c.startAll()
	f := &fleet{t: &reporter{T: t}, emulator: startEmulator(t, ""), cluster: c, dir: t.TempDir(), files: map[string][]byte{}}
	f.write("large", 3<<20, 1)
	for i := range 20 {
		f.write(fmt.Sprintf("small/%d", i), 1000, uint64(i))
	}
	var urls []string
	for _, n := range c.nodes {
		urls = append(urls, "tls://"+n.addr())
	}
	writeKeys(t, certs)
	as := func(user string, args ...string) []string {
		switch args[0] {
		case "submit", "cancel", "drain", "limit":
			args = append(args, "--sign-key", certs+"/sign.key")
		case "work":
			args = append(args, "--verify-key", certs+"/verify.pem", "--root", f.tree(), "--bucket", "data")
		}
		return append(args, "--nats", strings.Join(urls, ","), "--nats-ca", certs+"/ca.crt", "--nats-cert", certs+"/"+user+".crt", "--nats-key", certs+"/"+user+".key")
	}
	submit := []string{"submit", "-r", f.tree() + "/.", "gs://data/", "--nats-replicas", "3", "--endpoint", f.emulator.url()}
	if _, err := command(t, gcsupFleet, as("operator", submit...)...); err != nil {
		t.Fatal(err)
	}
	worker := start(t, nil, gcsupFleet, as("worker", "work", "--nats-replicas", "3", "--endpoint", f.emulator.url(), "--state", "gs://state/uploads", "--state-unsealed", "--until-empty")...)
	if worker.WaitFor(time.Minute) != 0 || !f.uploaded() || strings.Contains(strings.ToLower(worker.Stderr()), "violation") {
		t.Errorf("the worker ended with %d: %s", worker.Wait(), worker.Stderr())
	}
	if out, err := command(t, gcsupFleet, as("operator", "status")...); err != nil || !strings.Contains(out, "21 files") {
		t.Errorf("status: %v %s", err, out)
	}
	f.write("new", 1000, 1)
	for _, forbidden := range [][]string{submit, {"cancel"}, {"drain"}, {"limit", "1MiB"}} {
		if _, err := command(t, gcsupFleet, as("worker", forbidden...)...); err == nil {
			t.Errorf("a worker may %s", forbidden[0])
		}
	}
	if _, err := command(t, gcsupFleet, "status", "--nats", strings.Join(urls, ","), "--nats-ca", certs+"/ca.crt"); err == nil {
		t.Error("status works without a certificate")
	}
}

// replace replaces texts, and fails if one is not found.
func replace(t *testing.T, text string, by map[string]string) string {
	t.Helper()
	for from, to := range by {
		if !strings.Contains(text, from) {
			t.Errorf("there is no %s", from)
		}
		text = strings.ReplaceAll(text, from, to)
	}
	return text
}
