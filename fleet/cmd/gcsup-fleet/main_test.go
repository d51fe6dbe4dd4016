//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/spf13/pflag"

	"gcsup/backoff"
	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/fleet/internal/fleet"
	"gcsup/fleet/internal/testkeys"
	"gcsup/internal/cli/cmdline"
	"gcsup/internal/cli/exit"
	"gcsup/internal/require"
	"gcsup/internal/testprocess"
)

// TestMain runs the command if an environment variable is set, so that tests can
// start it as a process.
func TestMain(m *testing.M) {
	if os.Getenv("GCSUP_FLEET_TEST_MAIN") != "" {
		main()
	}
	openPolicy = backoff.Policy{Initial: time.Millisecond, Maximum: 2 * time.Millisecond, Jitter: backoff.FullJitter}
	os.Exit(m.Run())
}

// world is a directory with a tree and a queue, and a fake service.
type world struct {
	t    *testing.T
	gcs  *fakegcs.TestServer
	dir  string
	tree string
	keys []string // environment variables with the keys of the submitter

	mu   sync.Mutex
	puts []put
}

// put is a request with data.
type put struct {
	object string
	time   time.Time
}

func newWorld(t *testing.T, opts fakegcs.Options) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir(), tree: t.TempDir()}
	var err error
	w.keys, err = testkeys.Write(t.TempDir())
	require.NoError(t, err)
	opts.CreateBuckets, opts.NoMD5 = true, true
	opts.OnRequest = func(r fakegcs.Request) {
		if r.Op == faults.OpPut {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.puts = append(w.puts, put{r.Object, r.Time})
		}
	}
	w.gcs = fakegcs.NewServer(t, &opts)
	return w
}

// write makes a file of the tree.
func (w *world) write(name string, size int) []byte {
	w.t.Helper()
	data := make([]byte, size)
	r := rand.NewChaCha8([32]byte([]byte(fmt.Sprintf("%-32s", name))))
	_, _ = r.Read(data)
	require.NoError(w.t, os.WriteFile(filepath.Join(w.tree, name), data, 0o666))
	return data
}

// command returns the command in a new process.
func (w *world) command(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), "GCSUP_FLEET_TEST_MAIN=1", "GCSUP_FLEET_DIR="+w.dir, "STORAGE_EMULATOR_HOST="+w.gcs.URL)
	cmd.Stderr = w.t.Output()
	if slices.Contains(args, "--nats") { // the flags that are required then
		cmd.Env = append(append(cmd.Env, w.keys...), "GCSUP_ROOT="+w.tree, "GCSUP_BUCKET=my-bucket")
	}
	return cmd
}

// output runs the command and returns what it prints.
func (w *world) output(args ...string) []byte {
	w.t.Helper()
	out, err := w.command(args...).Output()
	if err != nil {
		w.t.Fatalf("gcsup-fleet %s: %v", strings.Join(args, " "), err)
	}
	return out
}

// up starts a server and workers, and stops them when the test ends.
func (w *world) up(args ...string) *testprocess.Process {
	w.t.Helper()
	return w.upTo(w.t.Output(), args...)
}

// upTo is like up, with the messages of the command in log.
func (w *world) upTo(log io.Writer, args ...string) *testprocess.Process {
	w.t.Helper()
	cmd := w.command(append([]string{"up", "--state=gs://state-bucket/uploads", "--ack-wait=4s", "--chunk-size=256KiB"}, args...)...)
	cmd.Stderr = log
	up := testprocess.Start(w.t, cmd)
	w.t.Cleanup(func() {
		up.Signal(syscall.SIGTERM)
		if up.Wait() != 0 {
			w.t.Errorf("up: %s", up.Output())
		}
	})
	return up
}

// status reads the status of the fleet, in this process: tests ask often. A server that has just started may have no queue.
func (w *world) status() *fleet.Status {
	w.t.Helper()
	s, out := new(fleet.Status), new(bytes.Buffer)
	switch code := execute(w.t.Context(), []string{"status", "--json", "--fleet-dir=" + w.dir}, stdio{out, w.t.Output()}); code {
	case exit.OK:
	case exit.Unavailable:
		return s
	default:
		w.t.Fatalf("status: exit code %d", code)
	}
	require.NoError(w.t, json.Unmarshal(out.Bytes(), s))
	return s
}

// await waits until a condition on the status of the fleet is true.
func (w *world) await(what string, is func(*fleet.Status) bool) *fleet.Status {
	w.t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		if _, err := os.Stat(filepath.Join(w.dir, addressFile)); err == nil {
			if s := w.status(); is(s) {
				return s
			} else if time.Now().After(deadline) {
				w.t.Fatalf("not %s: %+v", what, s)
			}
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("not %s: no server", what)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// check compares the objects with the files.
func (w *world) check(files map[string][]byte) {
	w.t.Helper()
	for name, want := range files {
		if got, err := w.gcs.ReadObject("my-bucket", "tree/"+name); err != nil || !bytes.Equal(got, want) {
			w.t.Errorf("%s is not the file: %v", name, err)
		}
	}
}

// TestUp uploads a tree with three workers. One is killed, and another one is suspended until its
// lease has expired.
func TestUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fakegcs.Options{Rate: 2 << 20})
	files := map[string][]byte{}
	for i := range 3 {
		name := fmt.Sprintf("large-%d", i)
		files[name] = w.write(name, 12<<20)
	}
	for i := range 20 {
		name := fmt.Sprintf("small-%02d", i)
		files[name] = w.write(name, 100*i)
	}
	w.up("--workers=3", "--jobs=1")
	w.await("three workers", func(s *fleet.Status) bool { return len(s.Workers) == 3 })
	var submitted struct{ Files int }
	out := w.output("submit", "-r", w.tree+"/.", "gs://my-bucket/tree", "--json")
	if err := json.Unmarshal(out, &submitted); err != nil || submitted.Files != len(files) {
		t.Errorf("submit: %s, %v", out, err)
	}
	s := w.await("three active workers", func(s *fleet.Status) bool {
		n := 0
		for _, worker := range s.Workers {
			if len(worker.Active) == 1 && worker.Active[0].Committed > 1<<20 {
				n++
			}
		}
		return n == 3
	})
	dead, asleep := s.Workers[0], s.Workers[1]
	send(t, dead.PID, syscall.SIGKILL)
	send(t, asleep.PID, syscall.SIGSTOP)
	object := strings.TrimPrefix(asleep.Active[0].Destination, "gs://my-bucket/")
	w.await("done", func(s *fleet.Status) bool { return s.Done.Files == len(files) })
	before := w.count(object)
	send(t, asleep.PID, syscall.SIGCONT)
	w.await("awake", func(s *fleet.Status) bool {
		for _, worker := range s.Workers {
			if worker.Name == asleep.Name && len(worker.Active) == 0 {
				return true
			}
		}
		return false
	})
	if after := w.count(object); after != before {
		t.Errorf("the worker that slept sent %d more requests for %s", after-before, object)
	}
	w.check(files)
	if got := w.output("submit", "-r", w.tree+"/.", "gs://my-bucket/tree"); !strings.Contains(string(got), "23 finished before") {
		t.Errorf("second submit: %s", got)
	}
}

// count returns the number of requests with data for an object.
func (w *world) count(object string) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.puts {
		if p.object == object {
			n++
		}
	}
	return n
}

func send(t *testing.T, pid int, s syscall.Signal) {
	t.Helper()
	p, err := os.FindProcess(pid)
	if err == nil {
		err = p.Signal(s)
	}
	require.NoError(t, err)
}

// TestOneProcess submits a tree and uploads it without a server: no port is opened.
func TestOneProcess(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fakegcs.Options{})
	files := map[string][]byte{"a.txt": w.write("a.txt", 1000), "large": w.write("large", 9<<20)}
	key := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(key, make([]byte, 32), 0o600))
	w.output("submit", "-r", w.tree+"/.", "gs://my-bucket/tree", "--cache-control=no-store", "--custom-time=2026-01-31T13:00:00+01:00")
	w.output("work", "--until-empty", "--state=gs://state-bucket/uploads", "--state-key-file="+key)
	w.check(files)
	o, _ := w.gcs.Object("my-bucket", "tree/a.txt")
	if o.CacheControl != "no-store" || o.ContentType != "text/plain" || !o.CustomTime.Equal(time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)) {
		t.Errorf("the settings of the object are %q, %q and %v", o.CacheControl, o.ContentType, o.CustomTime)
	}
	if s := w.status(); s.Done.Files != 2 || s.Tasks != 0 {
		t.Errorf("status %+v", s)
	}
}

// TestSubmitSkips checks that submit skips entries that are not files, and warns about
// them and about patterns that match nothing.
func TestSubmitSkips(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fakegcs.Options{})
	w.write("a.txt", 10)
	for _, link := range []string{"one", "two"} {
		require.NoError(t, os.Symlink("nothing", filepath.Join(w.tree, link)))
	}
	for _, c := range []struct {
		flags, out, messages string
		code                 int
	}{
		{"--json --exclude=*.tmp", `"files":1,.*"failed":0,"skipped":2}`, "gcsup-fleet: warning: 2 dangling symbolic links were skipped, such as .*/one\ngcsup-fleet: warning: nothing matches --exclude='\\*.tmp'\n", exit.OK},
		{"--ignore-symlinks", "1 in the queue before, 0 finished before, 0 refused", "", exit.OK},
		{"--ignore-symlinks --max-size 9B", "submitted 0 files, 0 B; 0 in the queue before, 0 finished before, 0 refused", "", exit.OK},
		{"--ignore-symlinks --min-size 10B --max-age 1d", "1 in the queue before, 0 finished before, 0 refused", "", exit.OK},
		{"--strict", "1 in the queue before, 0 finished before, 2 refused", "(.*: symbolic link not followed: .*\n){2}", exit.NoInput},
		{"--follow-symlinks --ignore-symlinks", "", "gcsup-fleet: --follow-symlinks and --ignore-symlinks exclude each other\n", exit.Usage},
	} {
		var out, messages bytes.Buffer
		cmd := w.command(append([]string{"submit", "-r", w.tree + "/.", "gs://my-bucket/tree"}, strings.Fields(c.flags)...)...)
		cmd.Stdout, cmd.Stderr = &out, &messages
		_ = cmd.Run()
		if code := cmd.ProcessState.ExitCode(); code != c.code || !regexp.MustCompile(c.out).Match(out.Bytes()) || !regexp.MustCompile("^"+c.messages+"$").Match(messages.Bytes()) {
			t.Errorf("submit %s: exit code %d, output %q, messages %q", c.flags, code, out.String(), messages.String())
		}
	}
}

// TestBrokenPipe checks that a command whose output is not read ends with an error, and is
// not killed.
func TestBrokenPipe(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fakegcs.Options{})
	w.write("a.txt", 10)
	reader, writer, err := os.Pipe()
	require.NoError(t, err)
	defer writer.Close()
	require.NoError(t, reader.Close())
	cmd := w.command("submit", "-r", w.tree+"/.", "gs://my-bucket/tree")
	cmd.Stdout = writer
	if err := cmd.Run(); cmd.ProcessState.ExitCode() != exit.IO {
		t.Errorf("error %v, want exit code %d", err, exit.IO)
	}
}

// TestUsage checks the exit codes of wrong command lines.
func TestUsage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for line, want := range map[string]int{
		"submit x":                                                   exit.Usage,
		"submit x b":                                                 exit.Usage,
		"submit --files-from f x gs://bb":                            exit.Usage,
		"submit missing gs://my-bucket":                              exit.NoInput,
		"submit -C . main.go gs://bb":                                exit.Usage,
		"submit main.go up.go gs://bbb/x":                            exit.Usage,
		"submit main.go gs://bb":                                     exit.Usage,
		"submit --files-from main.go -C missing gs://my-bucket":      exit.NoInput,
		"submit main.go --exclude-from " + dir + "/x gs://my-bucket": exit.NoInput,
		"submit main.go gs://my-bucket --retention-mode Locked":      exit.Usage,
		"submit main.go gs://my-bucket --content-type text":          exit.Usage,
		"submit main.go gs://my-bucket --storage-class COLD":         exit.Usage,
		"work":                            exit.Usage,
		"work --state gs://b/x":           exit.Usage,
		"work --state b --state-unsealed": exit.Usage,
		"work --state gs://b/x --state-unsealed --jobs 0":                                                             exit.Usage,
		"work --state gs://b/x --state-unsealed --max-wait 2m":                                                        exit.Usage,
		"work --state gs://b/x --state-unsealed --stall-rate 0":                                                       exit.Usage,
		"work --state gs://b/x --state-unsealed --log x":                                                              exit.Usage,
		"work --state gs://b/x --state-unsealed --nats nats://127.0.0.1:1 --root . ":                                  exit.Usage,
		"work --state gs://b/x --state-unsealed --nats nats://127.0.0.1:1 --root . --bucket my-bucket":                exit.Usage,
		"work --state gs://b/x --state-unsealed --nats nats://127.0.0.1:1 --bucket my-bucket --verify-key x":          exit.Usage,
		"work --state gs://b/x --state-unsealed --nats nats://127.0.0.1:1 --bucket my-bucket --root . --verify-key x": exit.NoInput,
		"submit main.go gs://my-bucket --nats nats://127.0.0.1:1":                                                     exit.Usage,
		"drain --sign-key main.go --nats nats://127.0.0.1:1":                                                          exit.NoInput,
		"limit off --nats nats://127.0.0.1:1":                                                                         exit.Usage,
		"cancel --nats nats://127.0.0.1:1":                                                                            exit.Usage,
		"retry --failed --nats nats://127.0.0.1:1":                                                                    exit.Usage,
		"work --state gs://b/x --state-key-file " + dir + "/key":                                                      exit.NoInput,
		"work --state gs://b/x --state-unsealed --bucket=":                                                            exit.Usage,
		"work --state gs://b/x --state-unsealed --bucket=gs://bucket":                                                 exit.Usage,
		"work --state gs://b/x --state-unsealed --root=":                                                              exit.Usage,
		"up --state gs://b/x --bucket=":                                                                               exit.Usage,
		"up --state gs://b/x --bucket=bucket/x":                                                                       exit.Usage,
		"up --state gs://b/x --root=":                                                                                 exit.Usage,
		"up --state gs://b/x --nats-cert=x":                                                                           exit.Usage,
		"up --state gs://b/x --verify-key=x":                                                                          exit.NoInput,
		"up --nats nats://x":                                                                                          exit.Usage,
		"up --workers 0":                                                                                              exit.Usage,
		"retry":                                                                                                       exit.Usage,
		"retry --failed key":                                                                                          exit.Usage,
		"forget":                                                                                                      exit.Usage,
		"forget key":                                                                                                  exit.Unavailable,
		"status --nats-cert x --nats nats://127.0.0.1:1":                                                              exit.Usage,
		"status --nats nats://127.0.0.1:1":                                                                            exit.Temporary,
		"limit":                                                                                                       exit.Usage,
		"limit fast":                                                                                                  exit.Usage,
		"drain --off=x":                                                                                               exit.Usage,
		"help":                                                                                                        exit.OK,
		"completion zsh":                                                                                              exit.OK,
		"limit off":                                                                                                   exit.Unavailable,
		"status --fleet X":                                                                                            exit.Usage,
		"status --nats nats://127.0.0.1:x":                                                                            exit.Usage,
		"submit --ack-wait 1s main.go gs://my-bucket":                                                                 exit.Usage,
	} {
		args := strings.Fields(line)
		if want != exit.OK {
			args = append(args, "--fleet-dir="+filepath.Join(dir, args[0]))
		}
		if got, _, text := here(t, args...); got != want || want != exit.OK && !strings.HasPrefix(text, "gcsup-fleet: ") {
			t.Errorf("%s: exit code %d, want %d: %q", line, got, want, text)
		}
	}
}

// TestUsageMessages checks that the error of a wrong command line describes the valid
// form.
func TestUsageMessages(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"unknown":       `unknown command "unknown"`,
		"stat":          `unknown command "stat", did you mean `,
		"help submits":  `unknown command "submits", did you mean `,
		"ls gs://b":     "gcsup-fleet uploads only; to list objects, run: gcloud storage ls",
		"status x":      `status: want no arguments, got "x"`,
		"submit":        "submit: want at least one SOURCE",
		"work --jobs=x": `--jobs "x": want a whole number`,
		"work --state=gs://b/x --state-unsealed --bucket=gs://b": `--bucket "gs://b": want the name of a bucket, such as my-bucket, without gs://`,
		"work --state=gs://b/x --state-unsealed --root=":         `--root "": want a directory`,
		"work --job=2": "unknown flag --job, did you mean --jobs?",
		"submit --manifest=main.go main.go gs://my-bucket": "manifest main.go: not a manifest; name another file",
	} {
		code, _, got := here(t, strings.Fields(line)...)
		if code != exit.Usage || !strings.HasPrefix(got, "gcsup-fleet: "+want) || strings.Count(got, "\n") != 1 {
			t.Errorf("%s: exit code %d, message %q, want %q...", line, code, got, want)
		}
	}
}

// TestEnvironment checks flags that come from environment variables.
func TestEnvironment(t *testing.T) {
	for name, value := range map[string]string{
		"GCSUP_FLEET_DIR": t.TempDir(), "GCSUP_STATE": "gs://state-bucket/x", "GCSUP_STATE_KEY_FILE": "missing",
		"GCSUP_WORKERS": "x", "GCSUP_MAX_WAIT": "2m", "GCSUP_RECURSIVE": "true", "GCSUP_MANIFEST": "missing", "GCSUP_HELP": "true",
	} {
		t.Setenv(name, value)
	}
	for line, want := range map[string]string{
		"up":                                   `GCSUP_WORKERS "x": want a whole number; see `,
		"work":                                 "--max-wait 2m0s: want more than 0 and less than 1m0s (--max-wait is from GCSUP_MAX_WAIT)",
		"work --state-unsealed":                "--max-wait 2m0s: ", // the flag has priority over the key file
		"work --max-wait 5s":                   "--state-key-file: ",
		"submit --files-from=- gs://my-bucket": "--manifest: ", // not an error with --recursive
	} {
		if _, _, text := here(t, strings.Fields(line)...); !strings.HasPrefix(text, "gcsup-fleet: "+want) {
			t.Errorf("%s: message %q, want %q", line, text, want)
		}
	}
}

// TestServersInErrors checks that errors name the NATS servers without their passwords.
func TestServersInErrors(t *testing.T) {
	t.Parallel()
	for _, servers := range []string{
		"nats://me:secret@127.0.0.1:1", "127.0.0.1:1,nats://secret@127.0.0.1:1", "nats://me:secret@127.0.0.1:1:x",
		"nats://secret:12/3@127.0.0.1:1", "nats://secret:1,2@127.0.0.1:1", // with a password that is not escaped
	} {
		_, _, text := here(t, "status", "--nats", servers)
		if strings.Contains(text, "secret") || !strings.Contains(text, "--nats") && !strings.Contains(text, "127.0.0.1:1") {
			t.Errorf("--nats %s: message %q", servers, text)
		}
	}
}

// TestControlCharacters checks that the name of a file cannot control the terminal.
func TestControlCharacters(t *testing.T) {
	t.Parallel()
	if _, _, text := here(t, "submit", "a\x1b[2Jb", "gs://my-bucket"); !strings.Contains(text, "a?[2Jb") {
		t.Errorf("message %q", text)
	}
}

// TestUnusableDirectory checks that the error names a directory that cannot be used for the queue.
func TestUnusableDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "nats"), nil, 0o600))
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var out, errs bytes.Buffer
	got := execute(ctx, []string{"status", "--fleet-dir", dir}, stdio{&out, &errs})
	if got != exit.IO || ctx.Err() != nil || !strings.Contains(errs.String(), filepath.Join(dir, "nats")) {
		t.Errorf("exit code %d, want %d: %s", got, exit.IO, errs.String())
	}
}

// run runs the command and returns its exit code and what it prints.
func (w *world) run(args ...string) (code int, text string) {
	w.t.Helper()
	cmd := w.command(args...)
	cmd.Stderr = nil
	out, _ := cmd.CombinedOutput()
	return cmd.ProcessState.ExitCode(), string(out)
}

// wants runs the command, and checks its exit code and that it prints a text.
func (w *world) wants(code int, text string, args ...string) {
	w.t.Helper()
	if got, printed := w.run(args...); got != code || !strings.Contains(printed, text) {
		w.t.Errorf("%s: exit code %d, want %d and %q: %s", strings.Join(args, " "), got, code, text, printed)
	}
}

// tryOnce is the command line of a worker that tries each file once.
var tryOnce = []string{
	"work", "--until-empty", "--max-failures=1", "--missing-for=0", "--state=gs://state-bucket/uploads", "--state-unsealed",
}

// key makes a key file.
func (w *world) key(fill byte) string {
	w.t.Helper()
	path := filepath.Join(w.t.TempDir(), "key")
	require.NoError(w.t, os.WriteFile(path, bytes.Repeat([]byte{fill}, 32), 0o600))
	return path
}

// TestWrongStateKey starts a worker with another key than that of an earlier one.
func TestWrongStateKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fakegcs.Options{})
	w.write("a", 10)
	w.output("submit", "-r", w.tree+"/.", "gs://my-bucket/tree")
	w.output("work", "--until-empty", "--state=gs://state-bucket/uploads", "--state-key-file="+w.key(1))
	for _, flag := range []string{"--state-key-file=" + w.key(2), "--state-unsealed"} {
		code, messages := w.run("work", "--state=gs://state-bucket/uploads", flag)
		if want := "gcsup-fleet: the key that seals the saved uploads is not that of the other workers"; code != exit.Config ||
			!strings.HasPrefix(messages, want) || !strings.Contains(messages, "delete gs://state-bucket/uploads/fleet-key") {
			t.Errorf("%s: exit code %d, message %q", flag, code, messages)
		}
	}
}

// TestOutageStatus checks that status prints why a worker waits.
func TestOutageStatus(t *testing.T) {
	var out bytes.Buffer
	o := fleet.Outage{Bucket: "data", Reason: "503 Service Unavailable", Since: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	err := printStatus(&out, &fleet.Status{Workers: []fleet.WorkerStatus{{Name: "a", Condition: "sending", Outages: []fleet.Outage{o}}}})
	if text := out.String(); err != nil || !regexp.MustCompile(`a +sending .*\n +waits +gs://data fails since 2026-01-02 03:04:05: 503 Service Unavailable`).MatchString(text) {
		t.Errorf("%v, %s", err, text)
	}
}

// TestUntilEmpty checks the exit codes of workers that end when the queue is empty.
func TestUntilEmpty(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fakegcs.Options{})
	w.write("a", 10)
	work := func(command string, want int, text string) {
		t.Helper()
		w.wants(want, text, append([]string{command}, tryOnce[1:]...)...)
	}
	submit := func() {
		t.Helper()
		w.output("submit", "-r", w.tree+"/.", "gs://my-bucket/tree", "--state=gs://state-bucket/uploads")
	}
	work("work", exit.Temporary, "it is not known what was submitted")
	work("up", exit.Temporary, "it is not known what was submitted")
	submit()
	require.NoError(t, os.RemoveAll(filepath.Join(w.dir, "nats")))
	work("work", exit.Temporary, "the queue was lost: submit the tree again: 1 files for gs://my-bucket/tree/ ")
	submit()
	submitted, err := os.Stat(filepath.Join(w.tree, "a"))
	require.NoError(t, err)
	require.NoError(t, os.Remove(filepath.Join(w.tree, "a")))
	work("up", exit.Data, "1 files failed: see gcsup-fleet status --failed")
	work("work", exit.Data, "1 files failed")
	w.write("a", 10)
	require.NoError(t, os.Chtimes(filepath.Join(w.tree, "a"), submitted.ModTime(), submitted.ModTime()))
	w.output("retry", "--failed")
	work("work", exit.OK, "")
}

// TestStoppedBeforeEmpty stops workers with --until-empty while a file is left. The exit code does not say that all is done.
// Only the worker of up is stopped first: another one replaces it.
func TestStoppedBeforeEmpty(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fakegcs.Options{Rate: 1 << 20})
	w.write("a", 60<<20)
	w.output("submit", "-r", w.tree+"/.", "gs://my-bucket/tree")
	for _, command := range []string{"work", "up --workers=1"} {
		p := testprocess.Start(t, w.command(append(strings.Fields(command), "--until-empty", "--state=gs://state-bucket/uploads", "--state-unsealed")...))
		of := func(without int) (pid int) {
			t.Helper()
			w.await("active", func(s *fleet.Status) bool {
				for _, worker := range s.Workers {
					if pid = worker.PID; pid != without && len(worker.Active) > 0 {
						return true
					}
				}
				return false
			})
			return pid
		}
		if first := of(0); command != "work" {
			send(t, first, syscall.SIGTERM)
			of(first)
		}
		p.Signal(syscall.SIGTERM)
		if code := p.Wait(); code != exit.Temporary {
			t.Errorf("%s: exit code %d, want %d: %s", command, code, exit.Temporary, p.Output())
		}
	}
}

// TestVariablesAreKnown checks the list by which gcsup knows the variables of this command.
func TestVariablesAreKnown(t *testing.T) {
	t.Parallel()
	shared := pflag.NewFlagSet("shared", pflag.ContinueOnError)
	new(cmdline.TreeFlags).Add(shared)
	new(cmdline.ObjectFlags).Add(shared)
	new(cmdline.SendFlags).Add(shared)
	own := map[string]bool{}
	root, _ := newRoot(stdio{io.Discard, io.Discard})
	for _, cmd := range root.Commands() {
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Name != "help" && !f.Hidden && shared.Lookup(f.Name) == nil {
				own[f.Name] = true
			}
		})
	}
	if have := slices.Sorted(maps.Keys(own)); !slices.Equal(have, cmdline.FlagsOfFleet) {
		t.Errorf("flags %q, cmdline.FlagsOfFleet has %q", have, cmdline.FlagsOfFleet)
	}
}

// TestHelpFitsScreen checks that the help of each command has at most 48 lines of 80 columns, and that
// the help of flags has the others.
func TestHelpFitsScreen(t *testing.T) {
	t.Parallel()
	help := func(args ...string) string {
		code, out, text := here(t, args...)
		if code != exit.OK {
			t.Fatalf("%q: exit code %d", args, code)
		}
		return out + text
	}
	root, _ := newRoot(stdio{io.Discard, io.Discard})
	all := help("help", "flags")
	for _, cmd := range append(root.Commands(), root) {
		words := strings.Fields(cmd.CommandPath())[1:]
		text := help(append(words, "--help")...)
		if n := strings.Count(text, "\n"); n > 48 {
			t.Errorf("%s: %d lines: mark fewer flags with cmdline.Common", cmd.CommandPath(), n)
		}
		for line := range strings.Lines(text) {
			if n := utf8.RuneCountInString(line) - 1; n > 80 {
				t.Errorf("%s: %d columns: %q", cmd.CommandPath(), n, line)
			}
		}
		flags := help(append([]string{"help", "flags"}, words...)...)
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			label := cmdline.Label(f)
			if f.Name != "help" && (!strings.Contains(flags, label) || !strings.Contains(all, label)) {
				t.Errorf("help flags has no %s, of %s", label, cmd.CommandPath())
			}
		})
	}
}

// TestVersion checks that the command prints its version.
func TestVersion(t *testing.T) {
	t.Parallel()
	code, out, text := here(t, "version")
	if code != exit.OK || !regexp.MustCompile(`^gcsup-fleet \S+ \(\S+\) go1\S+ \S+/\S+\n$`).MatchString(out) {
		t.Errorf("exit code %d: %q %s", code, out, text)
	}
}
