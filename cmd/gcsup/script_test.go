package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"gcsup/fakegcs"
	"gcsup/internal/cli/cmdline"
	"gcsup/internal/testprocess"
	"gcsup/internal/testsize"
)

var update = flag.Bool("update", false, "rewrite the expected output in the scripts")

func TestMain(m *testing.M) {
	testsize.Overlap()
	testscript.Main(unconfigured{m}, map[string]func(){"gcsup": main})
}

// unconfigured runs tests without the user's configuration, which commands in this process would read.
type unconfigured struct{ m *testing.M }

func (u unconfigured) Run() int {
	// Many tests make all commands again and again, which leaves almost nothing.
	debug.SetGCPercent(400)
	_ = os.Setenv("XDG_CONFIG_HOME", filepath.Join(os.TempDir(), "gcsup-no-configuration")) // the name is valid
	return u.m.Run()
}

// TestScripts runs the scripts in testdata with the real program in separate
// processes. They can use these commands besides those of testscript:
//
//	bytes FILE SIZE [SEED]         make a file of pseudo-random bytes
//	emulator [FLAG...]             start gcsup emulator with a free port, set STORAGE_EMULATOR_HOST
//	bucket NAME                    make a bucket there
//	stop-emulator [SIGNAL]         stop it; by default with SIGINT, and it must exit 0
//	exits CODE COMMAND...          run a command and check its exit code
//	same-object gs://B/O FILE      the emulator has an object of exactly these bytes
//	no-object gs://B/O             the emulator has no such object
//	begin NAME REGEXP COMMAND...   start a command, wait until a line of its standard output matches
//	signal NAME SIGNAL             send INT, TERM, HUP, KILL, STOP, CONT or USR2 to it
//	ended NAME CODE                wait until it ends; its output is in NAME.out and NAME.err. A killed command has code -1
//	received OP COUNT              the emulator received COUNT requests of that operation
//	requests [OP=COUNT...]         gcsup sent exactly these requests since the last call
//	together PREFIX MIN MAX        the emulator had at least MIN and at most MAX requests for objects with that prefix at a time
//	objects gs://B/PREFIX NAME...  the names of the objects with that prefix are exactly these
//	attributes gs://B/O            print the object's attributes, as the official library returns them
//	same-encrypted gs://B/O FILE KEYFILE  like same-object, for an object that only the key can read
//	no-text TEXT FILE...           the files do not contain the text
//	requester-pays NAME            make the bucket one for which the requester pays
//	documented [HEADING]           the last command printed what docs/how-to/troubleshooting.md has there; without it, all was used
//
// A script that begins with [!full] skip runs in .ci/run, and one with [short]
// skip in all but go test -short. With [!full] stop, or [short] stop, a script ends
// early elsewhere. Each process takes about 20 ms.
func TestScripts(t *testing.T) {
	t.Parallel()
	// If nohup started this process, it ignores SIGHUP, and its child processes would
	// too. With a handler, they do not.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			e.Values[childrenKey{}] = map[string]*testprocess.Process{}
			e.Values[documentedKey{}] = map[string]bool{}
			e.Values[requestsKey{}] = map[string]map[string]int{}
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("GCSUP_STATE_DIR", filepath.Join(e.WorkDir, "state"))
			// A program built with -race sleeps for a second before it ends, and
			// reports a race with an exit code that gcsup uses too.
			e.Setenv("GORACE", "atexit_sleep_ms=20 exitcode=166")
			// Most processes end before their garbage is worth a collection.
			e.Setenv("GOGC", "off")
			e.Setenv("GOMEMLIMIT", "128MiB")
			return nil
		},
		Condition: func(name string) (bool, error) {
			if name == "full" {
				return testsize.Full(1, 0) == 1, nil
			}
			return false, fmt.Errorf("unknown condition %q", name)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"bytes":         scriptBytes,
			"text":          scriptText,
			"emulator":      scriptEmulator,
			"bucket":        scriptBucket,
			"notify":        scriptNotify,
			"stop-emulator": scriptStopEmulator,
			"exits":         scriptExits,
			"same-object":   scriptSameObject,
			"no-object":     scriptNoObject,
			"begin":         scriptBegin,
			"signal":        scriptSignal,
			"ended":         scriptEnded,
			"received":      scriptReceived,
			"requests":      scriptRequests,
			"together":      scriptTogether,
			"objects":       scriptObjects,

			"attributes":     scriptAttributes,
			"same-encrypted": scriptSameEncrypted,
			"no-text":        scriptNoText,
			"requester-pays": scriptRequesterPays,
			"documented":     scriptDocumented,
		},
	})
}

func misused(ts *testscript.TestScript, neg, ok bool, text string) {
	if neg || !ok {
		ts.Fatalf("usage: %s", text)
	}
}

func number(ts *testscript.TestScript, text string) int {
	n, err := strconv.Atoi(text)
	ts.Check(err)
	return n
}

func scriptBytes(ts *testscript.TestScript, neg bool, args []string) {
	misused(ts, neg, len(args) == 2 || len(args) == 3, "bytes FILE SIZE [SEED]")
	seed := 1
	if len(args) == 3 {
		seed = number(ts, args[2])
	}
	var size cmdline.Size
	ts.Check(size.Set(args[1]))
	ts.Check(writeRandom(ts.MkAbs(args[0]), int64(size), uint64(seed)))
}

// scriptText writes text that can be compressed to about two thirds.
func scriptText(ts *testscript.TestScript, neg bool, args []string) {
	scriptBytes(ts, neg, args)
	path := ts.MkAbs(args[0])
	b, err := os.ReadFile(path)
	ts.Check(err)
	for i := range b {
		b[i] = "0123456789abcdefABCDEFGHIJKLMNOPQRSTUVWXYZ  etaoin\n    ,.-+#????"[b[i]%64]
	}
	ts.Check(os.WriteFile(path, b, 0o600))
}

func writeRandom(path string, size int64, seed uint64) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	var key [32]byte
	key[0], key[1] = byte(seed), byte(seed>>8)
	_, err = io.CopyN(f, rand.NewChaCha8(key), size)
	return errors.Join(err, f.Close())
}

// start starts a command and waits until its output matches. At the end of the script the command is
// killed if it is still running.
func start(ts *testscript.TestScript, until string, args []string) (p *testprocess.Process, match []string) {
	path := args[0]
	if path == "gcsup" { // the program under test
		path = filepath.Join(strings.Split(ts.Getenv("PATH"), string(os.PathListSeparator))[0], path)
	}
	cmd := exec.Command(path, args[1:]...)
	cmd.Dir = ts.MkAbs(".")
	for _, key := range []string{"HOME", "PATH", "GCSUP_STATE_DIR", "GCSUP_CONFIG", "STORAGE_EMULATOR_HOST", "SSL_CERT_FILE", "TMPDIR", "GOCOVERDIR", "GORACE"} {
		if value := ts.Getenv(key); value != "" {
			cmd.Env = append(cmd.Env, key+"="+value)
		}
	}
	p = testprocess.Start(scriptTB{ts}, cmd)
	return p, p.Await(until)
}

// scriptTB is a script as a test.
type scriptTB struct{ *testscript.TestScript }

func (ts scriptTB) Helper()                           {}
func (ts scriptTB) Errorf(format string, args ...any) { ts.Fatalf(format, args...) }
func (ts scriptTB) Cleanup(f func())                  { ts.Defer(f) }

// childrenOf returns the children of a script by name.
func childrenOf(ts *testscript.TestScript) map[string]*testprocess.Process {
	return ts.Value(childrenKey{}).(map[string]*testprocess.Process)
}

type childrenKey struct{}

func scriptBegin(ts *testscript.TestScript, neg bool, args []string) {
	misused(ts, neg, len(args) >= 3, "begin NAME REGEXP COMMAND...")
	childrenOf(ts)[args[0]], _ = start(ts, args[1], args[2:])
}

func signalOf(ts *testscript.TestScript, name string) os.Signal {
	switch name {
	case "INT":
		return os.Interrupt
	case "TERM":
		return syscall.SIGTERM
	case "HUP":
		return syscall.SIGHUP
	case "KILL":
		return os.Kill
	}
	if s := unixSignal(name); s != nil {
		return s
	}
	ts.Fatalf("unknown signal %q", name)
	return nil
}

func scriptSignal(ts *testscript.TestScript, neg bool, args []string) {
	misused(ts, neg, len(args) == 2 && childrenOf(ts)[args[0]] != nil, "signal NAME SIGNAL")
	childrenOf(ts)[args[0]].Signal(signalOf(ts, args[1]))
}

func scriptEnded(ts *testscript.TestScript, neg bool, args []string) {
	misused(ts, neg, len(args) == 2 && childrenOf(ts)[args[0]] != nil, "ended NAME CODE")
	c := childrenOf(ts)[args[0]]
	code := c.Wait()
	ts.Check(os.WriteFile(ts.MkAbs(args[0]+".out"), []byte(c.Stdout()), 0o600))
	ts.Check(os.WriteFile(ts.MkAbs(args[0]+".err"), []byte(c.Stderr()), 0o600))
	if want := number(ts, args[1]); code != want {
		ts.Fatalf("%s: exit code %d, want %d\n%s", args[0], code, want, c.Output())
	}
}

func scriptExits(ts *testscript.TestScript, neg bool, args []string) {
	misused(ts, neg, len(args) >= 2, "exits CODE COMMAND...")
	err := ts.Exec(args[1], args[2:]...)
	code := 0
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		code = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if want := number(ts, args[0]); code != want {
		ts.Fatalf("exit code %d, want %d", code, want)
	}
}

const emulatorName = "emulator"

func scriptEmulator(ts *testscript.TestScript, neg bool, args []string) {
	misused(ts, neg, true, "emulator [FLAG...]")
	c, ready := start(ts, `^export STORAGE_EMULATOR_HOST=(https?://.*)\n`, append([]string{"gcsup", "emulator", "--addr", "127.0.0.1:0"}, args...))
	childrenOf(ts)[emulatorName] = c
	ts.Setenv("STORAGE_EMULATOR_HOST", ready[1])
}

func scriptBucket(ts *testscript.TestScript, neg bool, args []string) {
	misused(ts, neg, len(args) == 1 || len(args) == 2, "bucket NAME [FIELDS]")
	body := `{"name":"` + args[0] + `"`
	for _, fields := range args[1:] {
		body += "," + fields
	}
	post(ts, "/storage/v1/b", body+"}")
}

// scriptNotify makes a bucket publish notifications.
func scriptNotify(ts *testscript.TestScript, neg bool, args []string) {
	misused(ts, neg, len(args) == 1, "notify BUCKET")
	post(ts, "/storage/v1/b/"+args[0]+"/notificationConfigs", `{"topic":"t","payload_format":"NONE"}`)
}

func post(ts *testscript.TestScript, path, body string) {
	resp, err := http.Post(ts.Getenv("STORAGE_EMULATOR_HOST")+path, "application/json", strings.NewReader(body))
	ts.Check(err)
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		ts.Fatalf("POST %s: status %d", path, resp.StatusCode)
	}
}

func scriptStopEmulator(ts *testscript.TestScript, neg bool, args []string) {
	misused(ts, neg, len(args) <= 1 && childrenOf(ts)[emulatorName] != nil, "stop-emulator [SIGNAL]")
	c := childrenOf(ts)[emulatorName]
	delete(childrenOf(ts), emulatorName)
	name := "INT"
	if len(args) == 1 {
		name = args[0]
	}
	c.Signal(signalOf(ts, name))
	code := c.Wait()
	switch {
	case name == "KILL":
	case code != 0:
		ts.Fatalf("emulator: %s", c.Output())
	case strings.Count(c.Stdout(), "\n") != 1:
		ts.Fatalf("emulator: more than one line on standard output:\n%s", c.Stdout())
	}
}

func get(ts *testscript.TestScript, path string) *http.Response {
	resp, err := http.Get(ts.Getenv("STORAGE_EMULATOR_HOST") + path)
	ts.Check(err)
	return resp
}

func getObject(ts *testscript.TestScript, gs string) *http.Response {
	bucket, object, err := parseDestination(gs)
	ts.Check(err)
	return get(ts, "/storage/v1/b/"+bucket+"/o/"+url.PathEscape(object)+"?alt=media")
}

func scriptSameObject(ts *testscript.TestScript, neg bool, args []string) {
	misused(ts, neg, len(args) == 2, "same-object gs://BUCKET/OBJECT FILE")
	want, err := os.ReadFile(ts.MkAbs(args[1]))
	ts.Check(err)
	resp := getObject(ts, args[0])
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	ts.Check(err)
	if resp.StatusCode != http.StatusOK || !bytes.Equal(got, want) {
		ts.Fatalf("%s: status %d, %d bytes; they are not the %d bytes of %s", args[0], resp.StatusCode, len(got), len(want), args[1])
	}
}

func scriptNoObject(ts *testscript.TestScript, neg bool, args []string) {
	misused(ts, neg, len(args) == 1, "no-object gs://BUCKET/OBJECT")
	resp := getObject(ts, args[0])
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusNotFound {
		ts.Fatalf("%s: status %d, want 404", args[0], resp.StatusCode)
	}
}

func scriptReceived(ts *testscript.TestScript, neg bool, args []string) {
	misused(ts, neg, len(args) == 2, "received OP COUNT")
	resp := get(ts, "/_fakegcs/stats")
	defer resp.Body.Close()
	var stats struct{ Ops map[string]int }
	ts.Check(json.NewDecoder(resp.Body).Decode(&stats))
	if got, want := stats.Ops[args[0]], number(ts, args[1]); got != want {
		ts.Fatalf("%d %s requests, want %d (all: %v)", got, args[0], want, stats.Ops)
	}
}

// requestsKey is the key of the requests that scriptRequests has counted: by
// emulator, and then by operation.
type requestsKey struct{}

func scriptRequests(ts *testscript.TestScript, neg bool, args []string) {
	misused(ts, neg, true, "requests [OP=COUNT...]")
	all := ts.Value(requestsKey{}).(map[string]map[string]int)
	host := ts.Getenv("STORAGE_EMULATOR_HOST")
	slices.Sort(args)
	// The emulator logs a request after its reply.
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		now := requestsOf(ts)
		var got []string
		for op, n := range now {
			if n -= all[host][op]; n > 0 {
				got = append(got, fmt.Sprintf("%s=%d", op, n))
			}
		}
		slices.Sort(got)
		if slices.Equal(got, args) {
			all[host] = now
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("requests %q, want %q", got, args)
		}
	}
}

func scriptTogether(ts *testscript.TestScript, neg bool, args []string) {
	misused(ts, neg, len(args) == 3, "together PREFIX MIN MAX")
	log := requestLog(ts)
	most := 0
	for _, first := range log {
		n := 0
		for _, r := range log {
			if strings.HasPrefix(r.Object, args[0]) && !r.Time.After(first.Time) && r.Time.Add(r.Elapsed).After(first.Time) {
				n++
			}
		}
		most = max(most, n)
	}
	if most < number(ts, args[1]) || most > number(ts, args[2]) {
		ts.Fatalf("%d requests at a time, want %s to %s", most, args[1], args[2])
	}
}

// requestLog returns the requests that the emulator received.
func requestLog(ts *testscript.TestScript) (log []fakegcs.Request) {
	resp := get(ts, "/_fakegcs/requests")
	defer resp.Body.Close()
	ts.Check(json.NewDecoder(resp.Body).Decode(&log))
	return log
}

// requestsOf counts the requests of gcsup in the emulator's log, by operation.
func requestsOf(ts *testscript.TestScript) map[string]int {
	count := map[string]int{}
	for _, r := range requestLog(ts) {
		if !strings.HasPrefix(r.UserAgent, "Go-http-client/") { // not one of this test
			count[string(r.Op)]++
		}
	}
	return count
}

func scriptObjects(ts *testscript.TestScript, neg bool, args []string) {
	misused(ts, neg, len(args) >= 1, "objects gs://BUCKET/PREFIX NAME...")
	bucket, prefix, err := parseDestination(args[0])
	ts.Check(err)
	var got []string
	for token := ""; ; {
		query := url.Values{"prefix": {prefix}, "pageToken": {token}}
		resp := get(ts, "/storage/v1/b/"+bucket+"/o?"+query.Encode())
		var page struct {
			Items         []struct{ Name string }
			NextPageToken string
		}
		err := json.NewDecoder(resp.Body).Decode(&page)
		_ = resp.Body.Close()
		ts.Check(err)
		if resp.StatusCode != http.StatusOK {
			ts.Fatalf("list %s: status %d", args[0], resp.StatusCode)
		}
		for _, o := range page.Items {
			got = append(got, o.Name)
		}
		if token = page.NextPageToken; token == "" {
			break
		}
	}
	want := slices.Clone(args[1:])
	slices.Sort(want)
	if !slices.Equal(got, want) {
		ts.Fatalf("objects %q, want %q", got, want)
	}
}
