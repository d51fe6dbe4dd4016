//go:build unix

package e2e_test

import (
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"gcsup/fakegcs/faults"
	"gcsup/internal/require"
	"gcsup/internal/testsize"
)

var (
	syncRounds = flag.Int("sync-rounds", testsize.Full(40, 12), "how many times to change a directory and its prefix, and to make them equal")
	syncSeed   = flag.Uint64("sync-seed", 0, "of the rounds; 0 takes that of testsize.Seed")
)

// syncPrefix is the prefix that is made equal to a directory.
const syncPrefix = "p/"

// TestSync changes a directory and its prefix at random, runs sync --delete with faults and kills it, and
// then runs it to its end. It compares the prefix with the directory, and checks that nothing
// outside of the prefix was touched. After each kill it checks that no object of an unchanged file is
// missing, and that nothing was deleted unless all files had been uploaded.
//
//	go test ./internal/e2e -run 'TestSync$' -sync-rounds 500 -sync-seed 7 -v
func TestSync(t *testing.T) {
	t.Parallel()
	s := newSyncTest(t)
	for round := 0; round < *syncRounds && !t.Failed(); round++ {
		s.round(round)
	}
	t.Logf("%d rounds, %d runs killed or interrupted, %d of them between two deletions, %d faults, %d files uploaded, %d objects deleted", *syncRounds, s.killed, s.between, s.faults, s.uploaded, s.deleted)
	if *syncRounds >= 100 && (s.between == 0 || s.faults == 0 || s.deleted == 0) {
		t.Error("the rounds were too easy")
	}
}

// syncTest is the state of TestSync.
type syncTest struct {
	*emulator
	random  chance
	root    string
	dir     *os.Root // of root: the edits must not follow the links that they make
	args    []string
	outside map[string]object // must never change
	took    time.Duration     // the last run that was not interrupted

	killed, between, faults, uploaded, deleted int
}

func newSyncTest(t *testing.T) *syncTest {
	t.Helper()
	dir := testsize.DiskDir(t)
	s := &syncTest{random: seeded(t, *syncSeed), emulator: startEmulator(t), root: filepath.Join(dir, "root"), took: 100 * time.Millisecond}
	s.args = []string{
		"sync", "--delete", "--max-delete", "100%", "--exclude", "*.tmp", "--json", "--quiet", "--max-wait", "20ms", "--retry-for", "30s",
		"--state-dir", filepath.Join(dir, "state"), "--endpoint", s.url, s.root, "gs://demo/" + strings.TrimSuffix(syncPrefix, "/"),
	}
	s.ok(os.Mkdir(s.root, 0o700))
	var err error
	s.dir, err = os.OpenRoot(s.root)
	s.ok(err)
	t.Cleanup(func() { _ = s.dir.Close() })
	s.ok(s.write("keep"))
	for _, name := range []string{"p", "p.x", "p-/x", "p0", "pq/x", "o/x", "gcsup-parts/x/1", "P/keep"} {
		s.put(s.random, "demo", name, 10)
	}
	s.outside, _ = s.split()
	return s
}

func (s *syncTest) ok(err error) {
	s.t.Helper()
	require.NoError(s.t, err)
}

// write writes a file of random bytes. Few sizes are possible, so that a change often keeps the size.
func (s *syncTest) write(name string) error {
	if info, err := s.dir.Lstat(name); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		_ = s.dir.Remove(name) // to open a FIFO would wait for its reader
	}
	if err := s.dir.MkdirAll(path.Dir(name), 0o700); err != nil {
		return err
	}
	size := s.random.IntN(4) * s.random.IntN(500)
	if s.random.oneIn(100) {
		size = 9 << 20
	}
	return s.dir.WriteFile(name, s.random.bytes(size), 0o600)
}

// split returns all objects: those outside of the prefix, and those below it by their name there.
func (s *syncTest) split() (outside, below map[string]object) {
	s.t.Helper()
	outside, below = s.objects("demo"), map[string]object{}
	for name, o := range outside {
		if name, ok := strings.CutPrefix(name, syncPrefix); ok {
			below[name] = o
			delete(outside, o.Name)
		}
	}
	return outside, below
}

// name returns a random name. Its characters are those around the slash in the order of bytes.
func (s *syncTest) name() string {
	var elements []string
	for range 1 + s.random.IntN(3) {
		elements = append(elements, pick(s.random, "a", "b", "c")+pick(s.random, "", "", "", ".", "-", "0", "!", " x", "é", ".tmp"))
	}
	return strings.Join(elements, "/")
}

// edit changes the directory and the objects below the prefix.
func (s *syncTest) edit() {
	s.t.Helper()
	for range s.random.IntN(15) {
		name := s.name()
		switch s.random.IntN(8) {
		case 0, 1, 2: // a new file, also in the place of a directory, and a directory in that of a file
			if s.write(name) != nil {
				first, _, _ := strings.Cut(name, "/")
				_ = s.dir.RemoveAll(pick(s.random, name, first))
				_ = s.write(name)
			}
		case 3:
			_ = s.dir.RemoveAll(name)
		case 4:
			_ = s.dir.Rename(name, s.name())
		case 5:
			if s.random.oneIn(2) {
				_ = s.dir.Symlink("/etc", name)
			} else {
				_ = syscall.Mkfifo(filepath.Join(s.root, "fifo"), 0o600)
				_ = s.dir.Rename("fifo", name)
			}
		case 6:
			s.put(s.random, "demo", syncPrefix+name, s.random.IntN(400))
		case 7:
			if s.random.oneIn(4) {
				s.put(s.random, "demo", syncPrefix+pick(s.random, name+"/", "up-1.gcsup", "tmp/x.gcsup"), 0)
				continue
			}
			for range s.random.IntN(30) { // many deletions, so that a kill is often between two of them
				s.put(s.random, "demo", syncPrefix+s.name()+fmt.Sprint(s.random.IntN(100)), 5)
			}
		}
	}
}

// files returns the expected objects of the files, and the names of entries that are skipped.
func (s *syncTest) files() (files map[string]object, skipped []string) {
	s.t.Helper()
	files = map[string]object{}
	s.ok(filepath.WalkDir(s.root, func(file string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(s.root, file)
		name := filepath.ToSlash(rel)
		switch {
		case err != nil || d.IsDir() || excludedFromSync(name):
			return err
		case !d.Type().IsRegular():
			skipped = append(skipped, name)
			return nil
		}
		data, err := os.ReadFile(file)
		files[name] = object{Name: syncPrefix + name, Size: int64(len(data)), CRC32C: sum(data)}
		return err
	}))
	return files, skipped
}

func excludedFromSync(name string) bool {
	return slices.ContainsFunc(strings.Split(name, "/"), func(element string) bool { return strings.HasSuffix(element, ".tmp") })
}

// protected reports whether an object without a file is not deleted.
func protected(o object, skipped []string) bool {
	name := strings.TrimPrefix(o.Name, syncPrefix)
	return excludedFromSync(name) || o.Size == 0 && strings.HasSuffix(name, "/") || strings.HasSuffix(name, ".gcsup") ||
		slices.ContainsFunc(skipped, func(s string) bool { return name == s || strings.HasPrefix(name, s+"/") })
}

// disturb adds faults for the next run.
func (s *syncTest) disturb() {
	s.t.Helper()
	var plan []faults.Fault
	for range s.random.IntN(4) {
		op := pick(s.random, faults.OpDelete, faults.OpDelete, faults.OpInsert, faults.OpList)
		do := pick(s.random,
			faults.Action{Effect: faults.EffectStatus, Status: 503}, faults.Action{Effect: faults.EffectStatus, Status: 429},
			faults.Action{Effect: faults.EffectStatus, Status: 404, Body: "<html>a proxy</html>"},
			faults.Action{Effect: faults.EffectLoseReply}, faults.Action{Effect: faults.EffectReset}, faults.Action{Effect: faults.EffectTruncateReply, Bytes: 20})
		if op != faults.OpDelete && do.Status == 404 {
			do = faults.Action{Effect: faults.EffectClose} // at first contact, the destination may be wrong
		}
		n := 1 + s.random.IntN(3)
		s.faults += n
		plan = append(plan, faults.Fault{Match: faults.Match{Op: op}, Skip: s.random.IntN(5), Times: n, Do: do})
	}
	if s.random.oneIn(2) {
		plan = append(plan, faults.Fault{Match: faults.Match{Op: faults.OpDelete}, Times: -1, Do: faults.Action{Effect: faults.EffectDelay, For: 3 * time.Millisecond}})
	}
	s.plant(plan...)
}

// syncRun is a run of sync, with the files and the objects before it, and the objects after it.
type syncRun struct {
	*child
	files, before, after map[string]object
	skipped              []string
}

// run runs sync with faults. meanwhile may kill it.
func (s *syncTest) run(meanwhile func(c *child)) (r syncRun) {
	s.t.Helper()
	r.files, r.skipped = s.files()
	_, r.before = s.split()
	s.disturb()
	r.child = run(s.t, environment(), s.args...)
	meanwhile(r.child)
	r.Wait()
	s.release()
	outside, after := s.settled()
	compare(s.t, "outside of the prefix", outside, s.outside)
	r.after = after
	return r
}

// settled returns what split does when it stays the same: the emulator may still serve requests that a process sent
// before it was killed.
func (s *syncTest) settled() (outside, below map[string]object) {
	s.t.Helper()
	outside, below = s.split()
	for same := 0; same < 3; same++ {
		time.Sleep(20 * time.Millisecond)
		others, now := s.split()
		if !maps.Equal(now, below) || !maps.Equal(others, outside) {
			same = -1
		}
		outside, below = others, now
	}
	return outside, below
}

// round changes everything, runs sync some times, and checks the result.
func (s *syncTest) round(n int) {
	s.t.Helper()
	s.edit()
	for range s.random.IntN(3) {
		s.interrupted()
	}
	planned := s.plan()
	r := s.run(func(*child) {})
	if r.Wait() != 0 {
		s.t.Fatalf("round %d: %s", n, r.output())
	}
	s.took = time.Since(r.began)
	want := map[string]object{}
	for name, o := range r.before {
		if _, ok := r.files[name]; !ok && protected(o, r.skipped) {
			want[name] = o
		} else if !ok {
			s.deleted++
			if !planned[name] {
				s.t.Errorf("round %d: --dry-run did not print %s", n, name)
			}
			delete(planned, name)
		}
	}
	if len(planned) > 0 {
		s.t.Errorf("round %d: --dry-run printed %v, which were not deleted", n, planned)
	}
	for name, file := range r.files {
		if was, ok := r.before[name]; ok && was.same(file) {
			want[name] = was // not uploaded again
			continue
		}
		s.uploaded++
		file.Generation = r.after[name].Generation
		want[name] = file
	}
	compare(s.t, "below the prefix", r.after, want)
	if s.t.Failed() {
		s.t.Logf("round %d: %s", n, r.output())
	} else if n%5 == 0 {
		v := run(s.t, environment(), "verify", "-r", "--extra", "--exclude", "*.tmp", "--endpoint", s.url, s.root+"/.", "gs://demo/"+syncPrefix)
		if v.Wait() != 0 {
			s.t.Errorf("round %d: %s", n, v.output())
		}
	}
}

// plan returns the names that --dry-run would delete. It changes nothing.
func (s *syncTest) plan() map[string]bool {
	s.t.Helper()
	_, before := s.split()
	c := run(s.t, environment(), append([]string{s.args[0], "--dry-run"}, s.args[1:]...)...)
	if c.Wait() != 0 {
		s.t.Fatal(c.output())
	}
	_, after := s.split()
	compare(s.t, "after --dry-run", after, before)
	planned := map[string]bool{}
	for _, l := range c.lines() {
		if l.Type == "deletion" && l.Status == "planned" {
			planned[strings.TrimPrefix(l.Destination, "gs://demo/"+syncPrefix)] = true
		}
	}
	return planned
}

// interrupted runs sync and kills or interrupts it, while another client may write objects.
func (s *syncTest) interrupted() {
	s.t.Helper()
	written := map[string]bool{}
	r := s.run(func(c *child) {
		s.random.pause(s.took / 2)
		for range s.random.IntN(3) {
			name := s.name()
			written[name] = true
			s.put(s.random, "demo", syncPrefix+name, 7)
		}
		s.random.pause(s.took / 2)
		if s.random.oneIn(4) {
			c.Signal(os.Interrupt)
		} else {
			c.Kill()
		}
	})
	gone, left, uploaded := 0, 0, true
	for name, file := range r.files {
		if was, ok := r.before[name]; ok && was.same(file) && !written[name] && r.after[name] != was {
			s.t.Errorf("after a kill: %s is %+v, want %+v", name, r.after[name], was)
		}
		uploaded = uploaded && (written[name] || r.after[name].same(file))
	}
	for name, o := range r.before {
		_, has := r.files[name]
		_, exists := r.after[name]
		switch {
		case has || written[name]:
		case exists:
			left++
		case protected(o, r.skipped):
			s.t.Errorf("after a kill: the protected object %s is deleted", name)
		default:
			gone++
		}
	}
	if gone > 0 && !uploaded {
		s.t.Errorf("after a kill: %d objects are deleted, but not all files are uploaded", gone)
	}
	if s.t.Failed() {
		s.t.Log(r.output())
	}
	if code := r.Wait(); code == -1 || code == 75 {
		s.killed++
		if gone > 0 && left > 0 {
			s.between++
		}
	}
}
