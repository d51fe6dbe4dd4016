//go:build linux

package fire_test

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	mathrand "math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const (
	ackWait = 5 * time.Second // so that a lease is 4 s
	workers = 4
)

// fleet has four workers. Each has its own links to the servers.
type fleet struct {
	t        *testing.T
	emulator *emulator
	cluster  *cluster
	dir      string // with the key and the tree
	files    map[string][]byte
	slots    []*slot
}

// slot is a machine on which one worker runs at a time.
type slot struct {
	number int
	clock  int // seconds by which its clock is wrong
	gcs    *link
	nats   []*link
	args   []string
	worker *process
	runs   int
	ended  []*process // that were killed, or ended
	down   bool       // the test killed the worker, and starts the next one
}

// newFleet starts the servers. rate is that of each connection to the emulator.
func newFleet(t *testing.T, rate string) *fleet {
	t.Helper()
	f := &fleet{t: t, emulator: startEmulator(t, rate), dir: t.TempDir(), files: map[string][]byte{}}
	f.cluster = startCluster(t)
	key := make([]byte, 32)
	_, _ = rand.Read(key)
	if err := os.WriteFile(f.key(), key, 0o600); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *fleet) key() string  { return filepath.Join(f.dir, "key") }
func (f *fleet) tree() string { return filepath.Join(f.dir, "tree") }

// write makes a file of the tree.
func (f *fleet) write(name string, size int, seed uint64) {
	f.t.Helper()
	data := make([]byte, size)
	var key [32]byte
	for i := range 8 {
		key[i] = byte(seed >> (8 * i))
	}
	_, _ = mathrand.NewChaCha8(key).Read(data)
	path := filepath.Join(f.tree(), name)
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = os.WriteFile(path, data, 0o600)
	}
	if err != nil {
		f.t.Fatal(err)
	}
	f.files[name] = data
}

// addWorkers makes the machines. clock returns the error of the clock of a machine, in seconds.
func (f *fleet) addWorkers(n int, clock func() int, args ...string) {
	f.t.Helper()
	host := loopback()
	for i := range n {
		s := &slot{number: i + 1, clock: clock(), gcs: newLink(f.t, host, f.emulator.addr)}
		for _, server := range f.cluster.nodes {
			s.nats = append(s.nats, newLink(f.t, host, server.addr()))
		}
		s.args = args
		f.slots = append(f.slots, s)
	}
}

// begin starts a worker on a machine.
func (f *fleet) begin(s *slot) {
	f.t.Helper()
	if s.worker != nil {
		s.ended = append(s.ended, s.worker)
	}
	s.runs++
	s.down = false
	var urls []string
	for _, l := range s.nats {
		urls = append(urls, "nats://"+l.addr())
	}
	args := append([]string{
		"work", "--nats", strings.Join(urls, ","), "--nats-replicas", "3", "--ack-wait", ackWait.String(),
		"--state", "gs://state/uploads", "--state-key-file", f.key(),
		"--name", fmt.Sprintf("m%d-%d", s.number, s.runs),
	}, s.args...)
	env := append(service(s.gcs.addr()), fmt.Sprintf("%s=%d", clockVariable, s.clock))
	s.worker = start(f.t, env, gcsupFleet, args...)
}

// service returns the environment of a program that reaches the service at an address. All machines must
// use the same name for the service. Each link is configured as a proxy: the emulator accepts requests
// for a proxy.
func service(addr string) []string {
	return []string{"STORAGE_EMULATOR_HOST=http://gcs.test", "http_proxy=http://" + addr}
}

// kill kills a worker.
func (s *slot) kill() {
	s.down = true
	s.worker.kill()
}

// supervise restarts workers that ended with exit code 75, for example because they started while the
// servers elected a leader.
func (f *fleet) supervise() {
	for _, s := range f.slots {
		if s.down || s.worker == nil || s.worker.alive() {
			continue
		}
		if code := s.worker.code(); code != 75 {
			f.t.Errorf("worker m%d-%d ended with %d", s.number, s.runs, code)
		}
		f.begin(s)
	}
}

// cut cuts all links of a machine.
func (s *slot) cut() {
	for _, l := range append(s.nats, s.gcs) {
		l.cut()
	}
}

// restore ends a cut of all links of a machine. With reset, it also resets their connections.
func (s *slot) restore(reset bool) {
	for _, l := range append(s.nats, s.gcs) {
		if reset {
			l.reset()
		}
		l.restore()
	}
}

// natsURL is the address of the servers without a link between.
func (f *fleet) natsURL() string {
	var urls []string
	for _, n := range f.cluster.nodes {
		urls = append(urls, "nats://"+n.addr())
	}
	return strings.Join(urls, ",")
}

// submit submits the tree. It is tried again while the servers elect a leader.
func (f *fleet) submit() {
	f.t.Helper()
	var err error
	if !await(time.Minute, func() bool {
		_, err = commandWith(f.t, service(f.emulator.addr), gcsupFleet, "submit", "-r", f.tree()+"/.", "gs://data/", "--nats", f.natsURL(), "--nats-replicas", "3", "--ack-wait", ackWait.String())
		return err == nil
	}) {
		f.t.Fatal(err)
	}
}

// queued returns the number of tasks in the queue, and the number of dead letters.
func (f *fleet) queued() (tasks, failed int, err error) {
	out, err := command(f.t, gcsupFleet, "status", "--json", "--nats", f.natsURL())
	if err != nil {
		return 0, 0, err
	}
	var s struct{ Tasks, Failed int }
	err = json.Unmarshal([]byte(out), &s)
	return s.Tasks, s.Failed, err
}

// uploaded reports whether there is an object for each file.
func (f *fleet) uploaded() bool {
	all, err := f.emulator.versions("data")
	if err != nil {
		return false
	}
	names := map[string]bool{}
	for _, v := range all {
		names[v.Name] = true
	}
	for name := range f.files {
		if !names[name] {
			return false
		}
	}
	return true
}

// rest waits until all files are uploaded and the queue is empty, and ends the workers.
func (f *fleet) rest(limit time.Duration) {
	f.t.Helper()
	if !await(limit, func() bool {
		f.supervise()
		return f.uploaded()
	}) {
		f.t.Errorf("not everything is uploaded %v after the last event", limit)
		return
	}
	var tasks, failed int
	var err error
	if !await(time.Minute, func() bool {
		f.supervise()
		tasks, failed, err = f.queued()
		return err == nil && tasks == 0
	}) {
		f.t.Errorf("everything is uploaded, and the queue still has %d tasks (%v)", tasks, err)
	}
	if failed > 0 {
		f.t.Errorf("%d files failed for good", failed)
	}
	for _, s := range f.slots {
		f.end(s)
	}
}

// end stops a worker with SIGTERM, like a machine that is taken away.
func (f *fleet) end(s *slot) {
	f.t.Helper()
	s.worker.signal(15)
	select {
	case <-s.worker.done:
	case <-time.After(30 * time.Second):
		s.worker.signal(3)
		<-s.worker.done
		f.t.Errorf("worker %d does not end after SIGTERM", s.number)
	}
	if code := s.worker.code(); code != 0 {
		f.t.Errorf("worker %d ended with %d", s.number, code)
	}
}

// logs prints the logs of the workers, for a failed test.
func (f *fleet) logs() {
	for _, s := range f.slots {
		for i, p := range append(s.ended, s.worker) {
			if p != nil {
				f.t.Logf("worker m%d-%d (clock %+d s):\n%s", s.number, i+1, s.clock, p.stderr())
			}
		}
	}
}
