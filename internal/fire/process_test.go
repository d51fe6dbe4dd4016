//go:build unix

package fire_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gcsup/fakegcs"
)

// program is the real gcsup, built once for all tests.
var program string

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "fire-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		program = filepath.Join(dir, "gcsup")
		if out, err := exec.Command("go", "build", "-o", program, "gcsup/cmd/gcsup").CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "%s%v\n", out, err)
			return 1
		}
		return m.Run()
	}())
}

// environment is that of a user who has set nothing, but for what is given.
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
	t    *testing.T
	cmd  *exec.Cmd
	err  bytes.Buffer
	done chan struct{} // closed when it has ended

	mu    sync.Mutex
	out   bytes.Buffer
	heard *sync.Cond // a line of out came
	ended bool
}

// run starts gcsup. It is killed at the end of the test if it is still there.
func run(t *testing.T, env []string, args ...string) *child {
	t.Helper()
	c := &child{t: t, cmd: exec.Command(program, args...), done: make(chan struct{})}
	c.heard = sync.NewCond(&c.mu)
	c.cmd.Env = env
	c.cmd.Stderr = &c.err
	stdout, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(c.done)
		for r := bufio.NewReader(stdout); ; {
			line, err := r.ReadString('\n')
			c.mu.Lock()
			c.out.WriteString(line)
			c.ended = err != nil
			c.heard.Broadcast()
			c.mu.Unlock()
			if err != nil {
				break
			}
		}
		_ = c.cmd.Wait()
	}()
	t.Cleanup(func() { c.kill() })
	return c
}

// says waits until the standard output contains a text; false: it ended without.
func (c *child) says(text string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for !strings.Contains(c.out.String(), text) {
		if c.ended {
			return false
		}
		c.heard.Wait()
	}
	return true
}

// kill sends SIGKILL and waits for the end.
func (c *child) kill() {
	_ = c.cmd.Process.Kill()
	<-c.done
}

// code waits for the end and gives the exit code, -1 when it was killed.
func (c *child) code() int {
	<-c.done
	return c.cmd.ProcessState.ExitCode()
}

// alive reports whether it is still running.
func (c *child) alive() bool {
	select {
	case <-c.done:
		return false
	default:
		return true
	}
}

// said is all that it printed; only after its end.
func (c *child) said() string {
	<-c.done
	return fmt.Sprintf("%q: exit code %d\n%s%s", c.cmd.Args, c.code(), &c.out, &c.err)
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
	Error       *struct {
		Kind    string `json:"kind"`
		Message string `json:"message"`
	} `json:"error"`
}

// lines are the JSON Lines that it printed; only after its end. A process that
// was killed may have left half of one.
func (c *child) lines() (all []line) {
	<-c.done
	for text := range strings.Lines(c.out.String()) {
		var l line
		if json.Unmarshal([]byte(text), &l) == nil {
			all = append(all, l)
		}
	}
	return all
}

// result is the last line of a process that ended by itself.
func (c *child) result() line {
	c.t.Helper()
	all := c.lines()
	if len(all) == 0 || all[len(all)-1].Type != "result" {
		c.t.Fatalf("no result: %s", c.said())
	}
	return all[len(all)-1]
}

func (l line) kind() string {
	if l.Error == nil {
		return l.Status
	}
	return l.Error.Kind
}

// emulator is gcsup emulator in a process of its own, on a directory, so that it
// can be killed and started again in the same place.
type emulator struct {
	t     *testing.T
	dir   string
	flags []string
	addr  string
	log   string // where its requests are written, a JSON line each, when they end
	child *child
}

func startEmulator(t *testing.T, flags ...string) *emulator {
	t.Helper()
	dir := t.TempDir()
	e := &emulator{t: t, dir: filepath.Join(dir, "gcs"), addr: loopback() + ":0", log: filepath.Join(dir, "log"), flags: flags}
	e.start()
	return e
}

var loopbacks atomic.Uint32

// loopback is an address of this machine. On Linux nobody else has it, so that
// a port of it that is given up is still free a moment later: a server that was
// killed gets it again, and one that is gone stays gone.
func loopback() string {
	if runtime.GOOS != "linux" { // elsewhere there is only this one
		return "127.0.0.1"
	}
	n := loopbacks.Add(1)
	return fmt.Sprintf("127.1.%d.%d", n>>8&0xff, n&0xff)
}

// start starts it, and returns when it serves.
func (e *emulator) start() {
	e.t.Helper()
	args := append([]string{"emulator", "--addr", e.addr, "--dir", e.dir, "--create-buckets", "--log", "json"}, e.flags...)
	c := run(e.t, environment(), args...)
	const ready = "export STORAGE_EMULATOR_HOST=http://"
	if !c.says("\n") {
		e.t.Fatal(c.said())
	}
	c.mu.Lock()
	e.addr = strings.TrimSpace(strings.TrimPrefix(c.out.String(), ready))
	c.mu.Unlock()
	e.child = c
}

// kill ends it at once, as a power switch would.
func (e *emulator) kill() {
	e.t.Helper()
	e.child.kill()
	e.keepLog()
}

func (e *emulator) keepLog() {
	e.t.Helper()
	f, err := os.OpenFile(e.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = e.child.err.WriteTo(f)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		e.t.Fatal(err)
	}
}

func (e *emulator) url() string { return "http://" + e.addr }

// hold lets an upload get to offset at, in requests of so many bytes (0: all in
// one), and no further until release: there it can be killed at leisure.
func (e *emulator) hold(at, chunk int64) {
	e.t.Helper()
	begin := int64(0)
	if chunk > 0 {
		begin = at - at%chunk
	}
	stall := func(bytes int64) fakegcs.Action { return fakegcs.Action{Effect: fakegcs.EffectStallBody, Bytes: bytes} }
	e.faults(http.MethodPost,
		fakegcs.Fault{Match: fakegcs.Match{From: begin, To: begin + 1}, Times: -1, Do: stall(at - begin)},
		fakegcs.Fault{Match: fakegcs.Match{From: at}, Times: -1, Do: fakegcs.Action{Effect: fakegcs.EffectStall}})
}

// reaches waits until the whole quanta below at are held; false: the process
// ended before.
func (e *emulator) reaches(c *child, at int64) bool {
	return until(c.done, time.Millisecond, func() bool { return e.held() >= at-at%(256<<10) })
}

// release ends a hold. A request that was held stays so.
func (e *emulator) release() {
	e.t.Helper()
	e.faults(http.MethodDelete)
}

func (e *emulator) faults(method string, faults ...fakegcs.Fault) {
	e.t.Helper()
	body, err := json.Marshal(faults)
	if err != nil {
		e.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(e.t.Context(), method, e.url()+"/_fakegcs/faults", bytes.NewReader(body))
	if err != nil {
		e.t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		e.t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusNoContent {
		e.t.Fatalf("faults: %s", resp.Status)
	}
}

// requests stops the emulator and gives the requests that ended while it ran, in
// the order in which they began.
func (e *emulator) requests() []fakegcs.Request {
	e.t.Helper()
	_ = e.child.cmd.Process.Signal(os.Interrupt)
	<-e.child.done
	e.keepLog()
	data, err := os.ReadFile(e.log)
	if err != nil {
		e.t.Fatal(err)
	}
	var all []fakegcs.Request
	for text := range strings.Lines(string(data)) {
		var r fakegcs.Request
		if err := json.Unmarshal([]byte(text), &r); err == nil { // a killed one may leave half a line
			all = append(all, r)
		}
	}
	slices.SortStableFunc(all, func(a, b fakegcs.Request) int { return a.Time.Compare(b.Time) })
	return all
}

// held is how many bytes it has taken in, of finished objects and of unfinished
// ones: it writes them to its directory as they come.
func (e *emulator) held() (n int64) {
	entries, _ := os.ReadDir(filepath.Join(e.dir, "blobs"))
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil {
			n += info.Size()
		}
	}
	return n
}

// object reads an object of the bucket demo; false: there is none.
func (e *emulator) object(name string) ([]byte, bool) {
	e.t.Helper()
	resp, err := http.Get(e.url() + "/storage/v1/b/demo/o/" + name + "?alt=media")
	if err != nil {
		e.t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		e.t.Fatal(err)
	}
	switch resp.StatusCode {
	case http.StatusOK:
		return data, true
	case http.StatusNotFound:
		return nil, false
	}
	e.t.Fatalf("%s: status %d", name, resp.StatusCode)
	return nil, false
}

// source makes a file of pseudo-random bytes.
func source(t *testing.T, path string, size int64, seed uint64) []byte {
	t.Helper()
	data := make([]byte, size)
	var key [32]byte
	for i := range 8 {
		key[i] = byte(seed >> (8 * i))
	}
	_, _ = rand.NewChaCha8(key).Read(data)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return data
}

// seeded is a source of random numbers whose seed is printed. 0 takes a new one.
func seeded(t *testing.T, seed uint64) *rand.Rand {
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// until polls what another process does; false: stop came first, or it was not
// so in three minutes, which no machine needs.
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
