//go:build linux

package e2e_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"gcsup/internal/testsize"
)

var spools = flag.Int("spools", testsize.Full(20, 5), "how many spooled streams end in a fault")

// spoolFault is what happens to the process that reads a stream.
type spoolFault int

const (
	killedWhileRead  spoolFault = iota // SIGKILL before the test closes the input
	killedAtEnd                        // SIGKILL about when the test closes the input
	killedAfterEnd                     // SIGKILL when the end is recorded
	stoppedAndKilled                   // SIGSTOP, then SIGCONT, then SIGKILL
	terminated                         // SIGTERM
	serviceAway                        // the service is killed, and comes back after the process has ended
	diskFull                           // there is no space for a while, then SIGKILL
	spoolFaults
)

func (f spoolFault) String() string {
	return [...]string{"killed while it reads", "killed at the end", "killed after the end", "stopped", "terminated", "outage", "disk full"}[f]
}

// spoolKiller collects the results.
type spoolKiller struct {
	runs                           [spoolFaults]int
	recorded, finished, incomplete int // streams with a recorded end; finished by the first process; that can never be completed
	gone                           int // streams of which nothing was kept
	resumes                        int
}

// TestSpoolKilled ends spooled streams by faults, and resumes them. If the end was recorded, the
// object must be made. If not, or if the test did not close the input, there must be none.
//
//	go test ./internal/e2e -run SpoolKilled -spools 300 -kill-seed 7 -v
func TestSpoolKilled(t *testing.T) {
	t.Parallel()
	random := seeded(t, *killSeed)
	e := startEmulator(t, "--rate", fmt.Sprint(64<<20))
	var k spoolKiller
	for n := 0; n < *spools && !t.Failed(); n++ {
		k.stream(t, e, random, n)
	}
	t.Logf("%v: %d ends recorded and all finished by %d resumes, %d finished at once, %d incomplete, %d of which nothing was kept", k.runs, k.recorded, k.resumes, k.finished, k.incomplete, k.gone)
}

// stream is one stream of the test.
type stream struct {
	t       *testing.T
	e       *emulator
	dir     string
	spool   string
	name    string
	content []byte
	flags   []string
}

func (k *spoolKiller) stream(t *testing.T, e *emulator, random chance, n int) {
	dir := t.TempDir()
	size := random.Int64N(20 << 20)
	if random.IntN(4) == 0 {
		size = random.Int64N(600 << 10)
	}
	s := &stream{t: t, e: e, dir: dir, spool: filepath.Join(dir, "spool"), name: fmt.Sprint("s", n)}
	s.content = source(t, filepath.Join(dir, "content"), size, random.Uint64())
	s.flags = []string{"--json", "--state-dir", filepath.Join(dir, "state"), "--endpoint", e.url, "--max-wait", "100ms", "--retry-for", "300ms"}
	fault := spoolFault(random.IntN(int(spoolFaults)))
	if err := os.Mkdir(s.spool, 0o700); err != nil {
		t.Fatal(err)
	}
	if fault == diskFull && !s.mount() {
		fault = killedAtEnd
	}
	k.runs[fault]++

	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	args := append([]string{"cp", "-", "gs://demo/" + s.name, "--spool", s.spool, "--spool-limit", fmt.Sprint(4 << 20 << random.IntN(4))}, s.flags...)
	c := runWith(t, environment(), in, args...)
	in.Close()
	cut := random.Int64N(size + 1)
	closed := k.fault(s, c, out, fault, cut, random)
	c.Wait()
	out.Close() // not before: that would be the end of the input
	k.check(s, c, closed, random)
}

// fault writes the input and causes the fault. It reports whether it closed the input.
func (k *spoolKiller) fault(s *stream, c *child, out *os.File, fault spoolFault, cut int64, random chance) (closed bool) {
	pause := func(most time.Duration) { time.Sleep(time.Duration(random.Int64N(int64(most)))) }
	write := func(p []byte) { _, _ = out.Write(p) } // the process may be dead
	signal := func(sig syscall.Signal) { c.Signal(sig) }
	end := func() bool {
		write(s.content[cut:])
		return out.Close() == nil
	}
	switch fault {
	case killedWhileRead:
		write(s.content[:cut])
		pause(20 * time.Millisecond)
		c.Kill()
		return false
	case stoppedAndKilled:
		write(s.content[:cut])
		signal(syscall.SIGSTOP)
		pause(100 * time.Millisecond)
		signal(syscall.SIGCONT)
		closed = end()
		pause(60 * time.Millisecond)
		c.Kill()
	case terminated:
		write(s.content[:cut])
		if random.IntN(2) == 0 {
			closed = end()
		}
		pause(40 * time.Millisecond)
		signal(syscall.SIGTERM)
	case serviceAway:
		write(s.content[:cut])
		s.e.kill()
		ended := make(chan bool)
		go func() { ended <- end() }() // waits if the spool is full
		select {
		case <-c.Done(): // its retries are exhausted
		case <-time.After(2 * time.Second):
		}
		s.e.start()
		closed = <-ended
		if random.IntN(2) == 0 {
			c.Kill()
		}
	case diskFull:
		ballast := filepath.Join(s.spool, "ballast")
		_ = os.WriteFile(ballast, make([]byte, 24<<20), 0o600) // as much as there is space for
		done := make(chan bool)
		go func() {
			write(s.content[:cut])
			done <- end()
		}()
		pause(200 * time.Millisecond)
		_ = os.Remove(ballast)
		closed = <-done
		pause(60 * time.Millisecond)
		c.Kill()
	default:
		write(s.content[:cut])
		closed = end()
		if fault == killedAfterEnd {
			until(c.Done(), 100*time.Microsecond, s.recorded)
		} else {
			pause(60 * time.Millisecond)
		}
		c.Kill()
	}
	return closed
}

// mount makes the directory of the spool a small file system, if the test may do that.
func (s *stream) mount() bool {
	if syscall.Mount("tmpfs", s.spool, "tmpfs", 0, "size=24m,mode=0700") != nil {
		return false
	}
	s.t.Cleanup(func() { _ = syscall.Unmount(s.spool, syscall.MNT_DETACH) })
	return true
}

// recorded reports whether the end of the stream is recorded.
func (s *stream) recorded() bool {
	ends, _ := filepath.Glob(filepath.Join(s.spool, "*", "end.json"))
	return len(ends) > 0
}

// left returns the files in the spool, without the locks of processes that were killed.
func (s *stream) left() (names []string) {
	_ = filepath.WalkDir(s.spool, func(path string, e os.DirEntry, err error) error {
		if err == nil && path != s.spool && !strings.HasSuffix(path, ".lock") {
			names = append(names, path)
		}
		return nil
	})
	return names
}

// saved returns the ID of the saved upload, or "".
func (s *stream) saved() string {
	s.t.Helper()
	c := run(s.t, environment(), "sessions", "list", "--json", "--state-dir", filepath.Join(s.dir, "state"), "--endpoint", s.e.url)
	c.Wait()
	var u struct{ ID string }
	for text := range strings.Lines(c.Stdout()) {
		if err := json.Unmarshal([]byte(text), &u); err != nil {
			s.t.Fatal(c.output())
		}
	}
	return u.ID
}

// check resumes the stream, with more kills, and checks the object.
func (k *spoolKiller) check(s *stream, first *child, closed bool, random chance) {
	t, recorded := s.t, s.recorded()
	_, made := s.e.object(s.name)
	if made && !closed {
		t.Errorf("%s is published, and its input was not closed", s.name)
	}
	id := s.saved()
	switch {
	case first.Wait() == 0:
		k.finished++
	case recorded:
		k.recorded++
	case id != "" && !made:
		k.incomplete++
	case !made:
		k.gone++
	}
	for tries := 0; id != "" && recorded && tries < 10; tries++ {
		k.resumes++
		c := run(t, environment(), append([]string{"resume", id}, s.flags...)...)
		if tries < 3 && random.IntN(2) == 0 {
			time.Sleep(time.Duration(random.Int64N(int64(120 * time.Millisecond))))
			c.Kill()
		}
		if c.Wait() == 0 {
			break
		}
		if c.Wait() > 0 && c.Wait() != 75 {
			if _, there := s.e.object(s.name); !there {
				t.Fatalf("%s: %s", s.name, c.output())
			}
			break // a kill after the object was made left a saved upload without files
		}
	}
	if id != "" && !recorded && !made {
		c := run(t, environment(), append([]string{"resume", id}, s.flags...)...)
		if c.Wait() != 65 || c.result().kind() != "incomplete" {
			t.Errorf("resume of %s, whose end was not recorded: %s", s.name, c.output())
		}
	}
	content, made := s.e.object(s.name)
	switch {
	case made && !bytes.Equal(content, s.content):
		t.Errorf("%s has %d bytes that are not the %d that were written", s.name, len(content), len(s.content))
	case made && !closed:
		t.Errorf("%s is published, and its input was not closed", s.name)
	case !made && (recorded || first.Wait() == 0):
		t.Errorf("%s does not exist, although its end was recorded (%v) or its process succeeded: %s", s.name, recorded, first.output())
	}
	c := run(t, environment(), "sessions", "prune", "--json", "--state-dir", filepath.Join(s.dir, "state"), "--endpoint", s.e.url)
	if c.Wait() != 0 {
		t.Errorf("prune: %s", c.output())
	}
	if id := s.saved(); id != "" {
		t.Errorf("%s is still saved as %s: %s", s.name, id, c.output())
	}
	// A process that dies before it saves the upload leaves files. The next stream removes them after a
	// week.
	if left := s.left(); len(left) > 0 && (id != "" || recorded) {
		t.Errorf("left of %s: %q", s.name, left)
	}
}
