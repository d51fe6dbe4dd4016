//go:build unix

package e2e_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/checksum"
	"gcsup/internal/require"
	"gcsup/internal/testprocess"
	"gcsup/internal/testsize"
)

// program returns the path of the real gcsup, built once for all tests.
var program string

func TestMain(m *testing.M) {
	testsize.Overlap()
	flag.Parse()
	if testing.Short() {
		fmt.Println("left out: tests with the real program, which take many seconds")
		return
	}
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "e2e-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		program = filepath.Join(dir, "gcsup")
		// Unlike go build, go run reuses a linked program in the build cache. The copy does
		// not change if another test run builds a newer one.
		if out, err := exec.Command("go", "run", "-exec", "cp", "gcsup/cmd/gcsup", program).CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "%s%v\n", out, err)
			return 1
		}
		return m.Run()
	}())
}

// environment returns the environment of the test, without the variables that
// configure gcsup, and with more.
func environment(more ...string) []string {
	env := slices.DeleteFunc(os.Environ(), func(v string) bool {
		for _, prefix := range []string{"GCSUP_", "GOOGLE_", "STORAGE_", "HTTP_PROXY=", "http_proxy=", "XDG_"} {
			if strings.HasPrefix(v, prefix) {
				return true
			}
		}
		return false
	})
	return append(env, more...)
}

// child is a gcsup process.
type child struct {
	*testprocess.Process
	t      *testing.T
	began  time.Time
	killed time.Time // by kill; zero if it ended before
}

// run starts gcsup. It is killed at the end of the test if it is still running.
func run(t *testing.T, env []string, args ...string) *child {
	t.Helper()
	return runWith(t, env, nil, args...)
}

// runWith is run with a standard input. The caller closes its copy of it.
func runWith(t *testing.T, env []string, stdin *os.File, args ...string) *child {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Env = env
	if stdin != nil {
		cmd.Stdin = stdin
	}
	began := time.Now()
	return &child{Process: testprocess.Start(t, cmd), t: t, began: began}
}

// kill sends SIGKILL. It returns false if the process ended before.
func (c *child) kill() bool {
	now := time.Now()
	if c.Kill(); c.Wait() != -1 {
		return false
	}
	c.killed = now
	return true
}

// output returns all output of a process that has ended.
func (c *child) output() string {
	c.Wait()
	return c.Output()
}

// line is one of the JSON Lines of cp, an event or the result.
type line struct {
	Type        string `json:"type"`
	Status      string `json:"status"`
	DelayMS     int64  `json:"delay_ms"`
	BytesSent   int64  `json:"bytes_sent"`
	BytesResent int64  `json:"bytes_resent"`
	ResumedFrom int64  `json:"resumed_from"`
	ID          string `json:"id"`
	Destination string `json:"destination"`
	Parallel    *struct {
		Parts int `json:"parts"`
	} `json:"parallel"`
	Error *struct {
		Kind    string `json:"kind"`
		Message string `json:"message"`
	} `json:"error"`
}

// lines returns the JSON Lines in the output of a process that has ended. It
// ignores an incomplete line of a killed process.
func (c *child) lines() (all []line) {
	c.Wait()
	for text := range strings.Lines(c.Stdout()) {
		var l line
		if json.Unmarshal([]byte(text), &l) == nil {
			all = append(all, l)
		}
	}
	return all
}

// result returns the last result of a process that ended by itself. Only a
// summary follows it.
func (c *child) result() line {
	c.t.Helper()
	all := c.lines()
	if n := len(all); n < 2 || all[n-2].Type != "result" || all[n-1].Type != "summary" {
		c.t.Fatalf("no result: %s", c.output())
	}
	return all[len(all)-2]
}

func (l line) kind() string {
	if l.Error == nil {
		return l.Status
	}
	return l.Error.Kind
}

// serve serves a handler on an address of its own.
func serve(t *testing.T, h http.Handler) *httptest.Server {
	t.Helper()
	ln, err := net.Listen("tcp", loopback()+":0")
	require.NoError(t, err)
	ts := &httptest.Server{Listener: ln, Config: &http.Server{Handler: h}}
	ts.Start()
	t.Cleanup(func() {
		ts.CloseClientConnections()
		ts.Close()
	})
	return ts
}

// emulator is "gcsup emulator" in a separate process, with its data in a
// directory, so that it can be killed and restarted with the same data.
type emulator struct {
	service
	dir   string
	flags []string
	addr  string
	log   string // log of finished requests, one JSON line each
	child *child
}

func startEmulator(t *testing.T, flags ...string) *emulator {
	t.Helper()
	dir := t.TempDir()
	e := &emulator{service: service{t: t}, dir: filepath.Join(dir, "gcs"), addr: loopback() + ":0", log: filepath.Join(dir, "log"), flags: flags}
	e.start()
	return e
}

var loopbacks atomic.Uint32

// loopback returns a loopback address. On Linux no other process uses it. A closed
// port therefore stays free, and a restarted server gets the same port.
func loopback() string {
	if runtime.GOOS != "linux" { // other systems have only this address
		return "127.0.0.1"
	}
	n := loopbacks.Add(1)
	return fmt.Sprintf("127.1.%d.%d", n>>8&0xff, n&0xff)
}

// start starts the emulator, and returns when it serves requests.
func (e *emulator) start() {
	e.t.Helper()
	args := append([]string{"emulator", "--addr", e.addr, "--dir", e.dir, "--create-buckets", "--log", "json"}, e.flags...)
	e.child = run(e.t, environment(), args...)
	e.addr = e.child.Await(`export STORAGE_EMULATOR_HOST=http://(\S+)\n`)[1]
	e.url = "http://" + e.addr
}

// kill kills the emulator with SIGKILL.
func (e *emulator) kill() {
	e.t.Helper()
	e.child.Kill()
	e.keepLog()
}

func (e *emulator) keepLog() {
	e.t.Helper()
	f, err := os.OpenFile(e.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = f.WriteString(e.child.Stderr())
		err = errors.Join(err, f.Close())
	}
	require.NoError(e.t, err)
}

// hold stops an upload at offset at until release is called, so that a test can
// kill it there. chunk is the size of a request in bytes; 0 means one request.
func (e *emulator) hold(at, chunk int64) {
	e.t.Helper()
	begin := int64(0)
	if chunk > 0 {
		begin = at - at%chunk
	}
	stall := func(bytes int64) faults.Action { return faults.Action{Effect: faults.EffectStallBody, Bytes: bytes} }
	e.plant(
		faults.Fault{Match: faults.Match{From: begin, To: begin + 1}, Times: -1, Do: stall(at - begin)},
		faults.Fault{Match: faults.Match{From: at}, Times: -1, Do: faults.Action{Effect: faults.EffectStall}})
}

// reaches waits until the server has the multiples of 256 KiB below at. It returns
// false if the process ended before.
func (e *emulator) reaches(c *child, at int64) bool {
	return until(c.Done(), time.Millisecond, func() bool { return e.held() >= at-at%(256<<10) })
}

// stop stops the emulator.
func (e *emulator) stop() {
	e.t.Helper()
	e.child.Signal(os.Interrupt)
	e.child.Wait()
	e.keepLog()
}

// requests stops the emulator and returns the requests that ended while it ran,
// in the order of their start.
func (e *emulator) requests() []fakegcs.Request {
	e.t.Helper()
	e.stop()
	data, err := os.ReadFile(e.log)
	require.NoError(e.t, err)
	var all []fakegcs.Request
	for text := range strings.Lines(string(data)) {
		var r fakegcs.Request
		if err := json.Unmarshal([]byte(text), &r); err == nil { // the last line of a killed emulator may be incomplete
			all = append(all, r)
		}
	}
	slices.SortStableFunc(all, func(a, b fakegcs.Request) int { return a.Time.Compare(b.Time) })
	return all
}

// held returns how many bytes the emulator has received, of finished and
// unfinished objects. It writes them to its directory when they arrive.
func (e *emulator) held() (n int64) {
	entries, _ := os.ReadDir(filepath.Join(e.dir, "blobs"))
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil {
			n += info.Size()
		}
	}
	return n
}

// source creates a file of pseudo-random bytes.
func source(t *testing.T, path string, size int64, seed uint64) []byte {
	t.Helper()
	data := make([]byte, size)
	var key [32]byte
	for i := range 8 {
		key[i] = byte(seed >> (8 * i))
	}
	_, _ = rand.NewChaCha8(key).Read(data)
	require.NoError(t, os.WriteFile(path, data, 0o600))
	return data
}

// sum returns the CRC32C of data as the service writes it.
func sum(data []byte) string { return checksum.Encode(checksum.Update(0, data)) }

// until polls until a condition on another process is true. It returns false if
// stop was closed first, or after three minutes.
func until(stop <-chan struct{}, every time.Duration, is func() bool) bool {
	for deadline := time.Now().Add(3 * time.Minute); time.Now().Before(deadline); {
		select {
		case <-stop:
			return false
		default:
		}
		if is() {
			return true
		}
		time.Sleep(every)
	}
	return false
}
