//go:build unix

package e2e_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"gcsup/fakegcs/faults"
	"gcsup/internal/testsize"
)

var (
	pairs    = flag.Int("pairs", testsize.Full(4, 1), "how often one Token is used on two machines at once")
	pairSeed = flag.Uint64("pair-seed", 0, "of the pairs; 0 takes a new one and prints it")
)

// starts returns the number of sessions that were started.
func starts(e *emulator) (n int) {
	for _, r := range e.requests() {
		if r.Op == faults.OpStart {
			n++
		}
	}
	return n
}

// TestTwoMachines copies a Token to a second state directory and resumes both
// copies at the same time. It checks that there is one complete object, and
// that the other process reports why it failed.
func TestTwoMachines(t *testing.T) {
	t.Parallel()
	random := seeded(t, *pairSeed)
	outcomes := map[string]int{}
	if testing.Short() {
		*pairs = min(*pairs, 1)
	}
	for range *pairs {
		dir := t.TempDir()
		path := filepath.Join(dir, "a.bin")
		content := source(t, path, 9<<20+random.Int64N(8<<20), random.Uint64())
		e := startEmulator(t, "--rate", "16MiB")
		args := func(machine string) (args []string, chunk int64) {
			args = []string{"cp", "--json", "--state-dir", filepath.Join(dir, machine), "--endpoint", e.url(), "--max-wait", "200ms", "--retry-for", "10m"}
			if random.IntN(2) == 0 {
				chunk = 1 << 20
				args = append(args, "--chunk-size", fmt.Sprint(chunk))
			}
			return append(args, path, "gs://demo/a"), chunk
		}
		aim := random.Int64N(6<<20) + 1<<20 | 1
		first, chunk := args("one")
		e.hold(aim, chunk)
		begun := run(t, environment(), first...)
		if !e.reaches(begun, aim) {
			t.Fatal(begun.output())
		}
		begun.Kill()
		e.release()
		if err := os.CopyFS(filepath.Join(dir, "two"), os.DirFS(filepath.Join(dir, "one"))); err != nil {
			t.Fatal(err)
		}
		tighten(t, filepath.Join(dir, "two"))

		argsOne, _ := args("one")
		argsTwo, _ := args("two")
		one := run(t, environment(), argsOne...)
		time.Sleep(time.Duration(random.Int64N(int64(300 * time.Millisecond)))) // a random moment
		two := run(t, environment(), argsTwo...)
		done, sessions := 0, 1
		for _, c := range []*child{one, two} {
			kind := ""
			switch c.Wait() {
			case 0:
				done++
				kind = "ok"
				if c.result().BytesSent == 0 {
					kind = "already finished"
				}
			default:
				kind = c.result().kind()
			}
			outcomes[kind]++
			if kind != "ok" && kind != "already finished" && kind != "unexpected_data" {
				t.Errorf("unexpected end: %s", c.output())
			}
		}
		if got, there := e.object("a"); done == 0 && there || done > 0 && !bytes.Equal(got, content) {
			t.Errorf("%d succeeded; the object (exists: %v, %d bytes) differs from the source\n%s\n%s", done, there, len(got), one.output(), two.output())
		}
		if done == 0 {
			// Both failed. A single process must succeed now.
			outcomes["neither"]++
			sessions++
			again := run(t, environment(), argsOne...)
			if again.Wait() != 0 {
				t.Errorf("alone: %s", again.output())
			}
			if got, _ := e.object("a"); !bytes.Equal(got, content) {
				t.Error("alone: the object differs from the source")
			}
		}
		if n := starts(e); n > sessions {
			t.Errorf("%d sessions, want at most %d", n, sessions)
		}
		if t.Failed() {
			return
		}
	}
	t.Logf("%d pairs: %v", *pairs, outcomes)
}

// tighten sets the modes of copied files to those that saved uploads must have.
func tighten(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return os.Chmod(path, 0o700)
		}
		return os.Chmod(path, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
}
