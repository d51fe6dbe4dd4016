//go:build linux

package e2e_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/require"
	"gcsup/internal/testsize"
)

var spools = flag.Int("spools", testsize.Full(20, 5), "how many spooled streams end in a fault")

// spoolFaults are what happens to the process that reads a stream, after a part of its input.
var spoolFaults = []fault[*stream]{
	{"killed while it reads", func(s *stream, c *child) { s.random.pause(20 * time.Millisecond) }},
	{"killed at the end", func(s *stream, c *child) {
		s.end()
		s.random.pause(60 * time.Millisecond)
	}},
	{"killed after the end", func(s *stream, c *child) {
		s.end()
		until(c.Done(), 100*time.Microsecond, s.isRecorded)
	}},
	{"stopped", func(s *stream, c *child) {
		c.Signal(syscall.SIGSTOP)
		s.random.pause(100 * time.Millisecond)
		c.Signal(syscall.SIGCONT)
		s.end()
		s.random.pause(60 * time.Millisecond)
	}},
	{"terminated", func(s *stream, c *child) {
		if s.random.oneIn(2) {
			s.end()
		}
		s.random.pause(40 * time.Millisecond)
		c.Signal(syscall.SIGTERM)
		c.Wait()
	}},
	{"outage", func(s *stream, c *child) { // the service comes back after the process has ended
		s.kill()
		s.endDuring(func() {
			select {
			case <-c.Done(): // its retries are exhausted
			case <-time.After(2 * time.Second):
			}
			s.start()
		})
		if s.random.oneIn(2) {
			c.Wait()
		}
	}},
	{"disk full", func(s *stream, c *child) { // the last one: it needs a small disk
		free := fill(s.t, s.spool)
		s.endDuring(func() {
			s.random.pause(200 * time.Millisecond)
			free()
		})
		s.random.pause(60 * time.Millisecond)
	}},
}

// spooling is a test of spooled streams, and its results.
type spooling struct {
	*emulator
	random                         chance
	runs                           map[string]int
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
	k := &spooling{random: seeded(t, *killSeed), emulator: startEmulator(t, "--rate", fmt.Sprint(64*mib)), runs: map[string]int{}}
	made := map[string]bool{}
	for n := 0; n < *spools && !t.Failed(); n++ {
		s := k.stream(fmt.Sprint("s", n))
		made[s.name] = s.check(s.disturbed())
	}
	unnamed := k.wantNoUploads()
	for name := range k.objects("demo") {
		if !made[name] {
			t.Errorf("the object %s is left", name)
		}
	}
	of, parted := map[string][]fakegcs.Request{}, map[string]bool{}
	for _, r := range k.requests() {
		of[r.Object] = append(of[r.Object], r)
		if r.Op == faults.OpPartsPut {
			parted[r.Object] = true
		}
	}
	for name := range made {
		if l := account(t, of[name], nil); l.again > 0 || l.twice >= 256<<10 {
			t.Errorf("%s: %d committed bytes were sent again, and %d bytes of a request received twice", name, l.again, l.twice)
		}
	}
	t.Logf("%v: %d ends recorded and all finished by %d resumes, %d finished at once, %d incomplete, %d of which nothing was kept; %d in parts, %d multipart uploads without a part left", k.runs, k.recorded, k.resumes, k.finished, k.incomplete, k.gone, len(parted), unnamed)
}

// stream is one stream of the test.
type stream struct {
	*spooling
	name   string
	dir    string
	spool  string
	source string   // a file with the content
	in     *os.File // the test writes the input here
	rest   []byte   // of the content, which the test has not written
	closed bool     // the test closed the input
	small  bool     // the spool is on a small disk
	parted bool     // it is sent in parts, unless its input ends before that begins
	limit  int64    // of the spool
}

func (k *spooling) stream(name string) *stream {
	k.t.Helper()
	size, dir := k.random.Int64N(20*mib), k.t.TempDir()
	if k.random.oneIn(4) {
		size = k.random.Int64N(600 << 10)
	}
	s := &stream{spooling: k, name: name, dir: dir, spool: filepath.Join(dir, "spool"), source: filepath.Join(dir, "source"), limit: 4 * mib << k.random.IntN(4)}
	if s.parted = k.random.oneIn(3); s.parted {
		size, s.limit = 17*mib+k.random.Int64N(24*mib), 16*mib<<k.random.IntN(2)
	}
	s.rest = source(k.t, s.source, size, k.random.Uint64())
	require.NoError(k.t, os.Mkdir(s.spool, 0o700))
	s.small = k.random.oneIn(len(spoolFaults)) && smallDisk(k.t, s.spool, "24m")
	return s
}

// gcsup starts a process with the store of the stream.
func (s *stream) gcsup(stdin *os.File, args ...string) *child {
	s.t.Helper()
	return runWith(s.t, environment(), stdin, append(args, "--json", "--state-dir", filepath.Join(s.dir, "state"), "--endpoint", s.url)...)
}

// resume starts a process that resumes the stream.
func (s *stream) resume(id string) *child {
	s.t.Helper()
	return s.gcsup(nil, "resume", id, "--max-wait", "100ms", "--retry-for", "300ms")
}

// disturbed runs the process that reads the stream, until a fault ends it.
func (s *stream) disturbed() *child {
	s.t.Helper()
	in, out, err := os.Pipe()
	require.NoError(s.t, err)
	s.in = out
	args := []string{"cp", "-", "gs://demo/" + s.name, "--spool", s.spool, "--spool-limit", fmt.Sprint(s.limit), "--max-wait", "100ms", "--retry-for", "300ms"}
	if s.parted {
		args = append(args, "--parallel", "4")
	}
	c := s.gcsup(in, args...)
	in.Close()
	defer out.Close() // not before the end of the process: that would be the end of the input
	f := spoolFaults[len(spoolFaults)-1]
	if !s.small {
		f = pick(s.random, spoolFaults[:len(spoolFaults)-1]...)
		s.write(s.random.IntN(len(s.rest) + 1))
	}
	s.runs[f.name]++
	f.do(s, c)
	c.Kill()
	return c
}

// write writes n bytes of the input. The process may be dead.
func (s *stream) write(n int) {
	_, _ = s.in.Write(s.rest[:n])
	s.rest = s.rest[n:]
}

// end writes the rest of the input and closes it.
func (s *stream) end() {
	s.write(len(s.rest))
	s.in.Close()
	s.closed = true
}

// endDuring is end, which may wait until the spool has space, and something that happens meanwhile.
func (s *stream) endDuring(meanwhile func()) {
	ended := make(chan bool)
	go func() {
		s.end()
		close(ended)
	}()
	meanwhile()
	<-ended
}

// isRecorded reports whether the end of the stream is recorded.
func (s *stream) isRecorded() bool {
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
	c := s.gcsup(nil, "uploads", "list")
	c.Wait()
	var u struct{ ID string }
	if out := c.Stdout(); out != "" && json.Unmarshal([]byte(out), &u) != nil {
		s.t.Fatal(c.output())
	}
	return u.ID
}

// check resumes the stream, with more kills, and checks the object. It reports whether there is one.
func (s *stream) check(first *child) (made bool) {
	s.t.Helper()
	recorded, id := s.isRecorded(), s.saved()
	made = s.identical(s.name, s.source)
	switch {
	case first.Wait() == 0:
		s.finished++
	case recorded:
		s.recorded++
	case id != "" && !made:
		s.incomplete++
		if c := s.resume(id); c.Wait() != 65 || c.result().kind() != "incomplete" {
			s.t.Errorf("resume of %s, whose end was not recorded: %s", s.name, c.output())
		}
	case !made:
		s.gone++
	}
	for tries := 0; id != "" && recorded && tries < 10; tries++ {
		s.resumes++
		c := s.resume(id)
		if tries < 3 && s.random.oneIn(2) {
			s.random.pause(120 * time.Millisecond)
			c.Kill()
		}
		if code := c.Wait(); code == 0 || code > 0 && code != 75 {
			// A kill after the object was made leaves a saved upload without files.
			if code != 0 && !s.identical(s.name, s.source) {
				s.t.Fatalf("%s: %s", s.name, c.output())
			}
			break
		}
	}
	made = s.identical(s.name, s.source)
	if made && !s.closed {
		s.t.Errorf("%s is published, and its input was not closed", s.name)
	}
	if !made && (recorded || first.Wait() == 0) {
		s.t.Errorf("%s does not exist, although its end was recorded (%v) or its process succeeded: %s", s.name, recorded, first.output())
	}
	prune := s.gcsup(nil, "uploads", "prune")
	if prune.Wait() != 0 {
		s.t.Errorf("prune: %s", prune.output())
	}
	if id := s.saved(); id != "" {
		s.t.Errorf("%s is still saved as %s: %s", s.name, id, prune.output())
	}
	// A process that dies before it saves the upload leaves files. The next stream removes them after a
	// week.
	if left := s.left(); len(left) > 0 && (id != "" || recorded) {
		s.t.Errorf("left of %s: %q", s.name, left)
	}
	return made
}
