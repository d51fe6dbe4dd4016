//go:build linux

package fire_test

import (
	"crypto/rand"
	"fmt"
	mathrand "math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"gcsup/fleet/internal/testkeys"
	"gcsup/internal/require"
	"gcsup/internal/testprocess"
)

const (
	ackWait = 5 * time.Second // so that a lease is 4 s
	workers = 4
)

// fleet has workers. Each has its own links to the servers.
type fleet struct {
	t        *reporter
	emulator *emulator
	cluster  *cluster // nil if gcsup-fleet up runs the server
	dir      string   // with the key and the tree
	keys     []string // environment variables with the keys of the submitter
	files    map[string][]byte
	bad      map[string]badFile // of files
	slots    []*slot

	// Of gcsup-fleet up:
	fleetDir string // "" if there is a cluster
	disk     *disk  // with fleetDir; nil if it is an ordinary directory
	up       *testprocess.Process
	upLogs   []string // of the processes that ended
}

// reporter keeps what failed, so that it can be repeated after the logs of a fleet.
type reporter struct {
	*testing.T
	failed []string
}

func (r *reporter) Errorf(format string, args ...any) {
	r.Helper()
	r.failed = append(r.failed, fmt.Sprintf(format, args...))
	r.T.Errorf(format, args...)
}

// slot is a machine on which one worker runs at a time.
type slot struct {
	number int
	clock  int // seconds by which its clock is wrong
	gcs    *link
	nats   []*link
	args   []string
	worker *testprocess.Process
	runs   int
	ended  []*testprocess.Process // that were killed, or ended
	down   bool                   // the test killed the worker, and starts the next one; or it has ended as it must

	view     string              // the working directory of its workers, which has the tree
	user     *syscall.Credential // of its workers; nil is that of the test
	key      string              // the file with the key of its workers
	stranger bool                // its user of NATS may do nothing
	wants    int                 // the exit code with which its workers must end by themselves; 0 if they must not
}

// newFleet starts an emulator. rate is that of each connection to it.
func newFleet(t *testing.T, rate string) *fleet {
	t.Helper()
	f := &fleet{t: &reporter{T: t}, emulator: startEmulator(t, rate), dir: publicDir(t, "fire-"), files: map[string][]byte{}, bad: map[string]badFile{}}
	require.NoError(t, os.Symlink("/proc/self/cwd", f.mount()))
	f.writeKey(f.key())
	f.keys = writeKeys(t, f.dir)
	return f
}

// publicDir returns a new directory that other users can enter.
func publicDir(t *testing.T, name string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", name)
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// writeKeys makes the keys of a submitter, and returns the environment variables that select them.
func writeKeys(t *testing.T, dir string) []string {
	t.Helper()
	env, err := testkeys.Write(dir)
	require.NoError(t, err)
	return env
}

// writeKey makes a file with a random key.
func (f *fleet) writeKey(path string) {
	f.t.Helper()
	key := make([]byte, 32)
	_, _ = rand.Read(key)
	require.NoError(f.t, os.WriteFile(path, key, 0o600))
}

func (f *fleet) key() string { return filepath.Join(f.dir, "key") }

// tree is the directory with the files.
func (f *fleet) tree() string { return filepath.Join(f.shared(), "tree") }

// shared is the working directory of all processes that see the tree.
func (f *fleet) shared() string { return filepath.Join(f.dir, "shared") }

// mount stands for the volume with the tree on all machines. It is a link to the working directory
// of the process that follows it, so that a machine can have another tree at the same path.
func (f *fleet) mount() string { return filepath.Join(f.dir, "mount") }

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
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = os.WriteFile(path, data, 0o644)
	}
	require.NoError(f.t, err)
	f.files[name] = data
}

// addWorkers makes the machines. clock returns the error of the clock of a machine, in seconds.
func (f *fleet) addWorkers(n int, clock func() int, args ...string) {
	f.t.Helper()
	for range n {
		f.addWorker(f.emulator.addr, clock(), args...)
	}
}

// addWorker makes a machine whose link to the service leads to an address.
func (f *fleet) addWorker(gcs string, clock int, args ...string) *slot {
	f.t.Helper()
	host := loopback()
	s := &slot{number: len(f.slots) + 1, clock: clock, gcs: newLink(f.t.T, host, gcs), args: args, view: f.shared(), key: f.key()}
	for _, server := range f.cluster.nodes {
		s.nats = append(s.nats, newLink(f.t.T, host, server.addr()))
	}
	f.slots = append(f.slots, s)
	return s
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
	user := ""
	if s.stranger {
		user = strangerLogin + "@"
	}
	for _, l := range s.nats {
		urls = append(urls, "nats://"+user+l.addr())
	}
	args := append([]string{
		"work", "--nats", strings.Join(urls, ","), "--ack-wait", ackWait.String(),
		"--state", stateURL, "--state-key-file", s.key,
	}, append(f.limits(), s.args...)...)
	env := append(service(s.gcs.addr()), fmt.Sprintf("%s=%d", clockVariable, s.clock), f.keys[1])
	s.worker = startIn(f.t.T, s.view, s.user, env, gcsupFleet, args...)
}

// stateURL is where the workers save their uploads.
const stateURL = "gs://state/uploads"

// service returns the environment of a program that reaches the service over an address. All
// processes must use the same name for the service. Therefore the address is configured as a proxy:
// the emulator accepts requests for a proxy.
func service(addr string) []string {
	return []string{"STORAGE_EMULATOR_HOST=http://gcs.test", "http_proxy=http://" + addr}
}

// kill kills a worker.
func (s *slot) kill() {
	s.down = true
	s.worker.Kill()
}

// supervise restarts workers that ended with exit code 75, for example because they started while the
// servers elected a leader.
func (f *fleet) supervise() {
	f.superviseUp()
	for _, s := range f.slots {
		if s.down || s.worker == nil || s.worker.Alive() {
			continue
		}
		switch code := s.worker.Wait(); {
		case s.wants != 0 && code == s.wants:
			s.down = true
			continue
		case code != 75:
			f.t.Errorf("worker m%d-%d ended with %d, want %d or 75: %s", s.number, s.runs, code, s.wants, lastLine(s.worker.Stderr()))
		}
		f.begin(s)
	}
}

// lastLine returns the last line of a text.
func lastLine(text string) string {
	text = strings.TrimSuffix(text, "\n")
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// cut cuts all links of a machine.
func (s *slot) cut() {
	s.cutNATS()
	s.gcs.cut()
}

// cutNATS cuts the links of a machine to the NATS servers.
func (s *slot) cutNATS() {
	for _, l := range s.nats {
		l.cut()
	}
}

// restore ends a cut of all links of a machine. With reset, it also resets their connections.
func (s *slot) restore(reset bool) {
	s.restoreNATS(reset)
	s.gcs.end(reset)
}

// restoreNATS ends a cut of the links of a machine to the NATS servers.
func (s *slot) restoreNATS(reset bool) {
	for _, l := range s.nats {
		l.end(reset)
	}
}

// queueFlags select the queue, without a link between.
func (f *fleet) queueFlags() []string {
	if f.cluster == nil {
		return []string{"--fleet-dir", f.fleetDir}
	}
	return []string{"--nats", f.cluster.urls()}
}

// command starts a command of gcsup-fleet on a machine that sees the tree.
func (f *fleet) command(args ...string) *testprocess.Process {
	f.t.Helper()
	program, args := f.disk.inside(f.shared(), gcsupFleet, append(args, f.queueFlags()...)...)
	return startIn(f.t.T, f.shared(), nil, append(service(f.emulator.addr), f.keys...), program, args...)
}

// limits are the flags that permit a worker to upload the tree. The tree is in mount by its path, and in shared after
// the links of the path.
func (f *fleet) limits() []string {
	return []string{"--root", f.mount(), "--root", f.shared(), "--bucket", "data"}
}

// submit submits the tree.
func (f *fleet) submit() {
	f.t.Helper()
	f.insist("submit", "-r", f.mount()+"/tree/.", "gs://data/", "--ack-wait", ackWait.String(), "--state", stateURL)
}

// insist runs a command of gcsup-fleet to its end. It is tried again while the servers elect a leader.
func (f *fleet) insist(args ...string) {
	f.t.Helper()
	var err error
	if !poll(100*time.Millisecond, time.Minute, func() bool {
		_, err = result(f.command(args...))
		return err == nil
	}) {
		f.t.Fatal(err)
	}
}

// uploaded reports whether there is an object for each file that is not bad.
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
		if _, bad := f.bad[name]; !bad && !names[name] {
			return false
		}
	}
	return true
}

// end stops a worker with SIGTERM, like a machine that is taken away.
func (f *fleet) end(s *slot) {
	f.t.Helper()
	s.worker.Signal(syscall.SIGTERM)
	if code := s.worker.WaitFor(30 * time.Second); code != 0 {
		f.t.Errorf("worker %d ended with %d", s.number, code)
	}
}

// logs prints the logs of the workers, for a failed test.
func (f *fleet) logs() {
	for _, s := range f.slots {
		for i, p := range append(s.ended, s.worker) {
			if p != nil {
				f.t.Logf("worker m%d-%d (clock %+d s):\n%s", s.number, i+1, s.clock, p.Stderr())
			}
		}
	}
	if f.up != nil {
		f.t.Logf("gcsup-fleet up:\n%s", f.upLog())
	}
}
