package e2e_test

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"gcsup/chunk"
	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/testsize"
	"gcsup/upload/outbox"
)

var (
	outboxRuns = flag.Int("outbox-runs", testsize.Full(50, 25), "how many runs of an outbox end in a fault")
	outboxSeed = flag.Uint64("outbox-seed", 0, "of these runs; 0 takes that of testsize.Seed")
)

// TestOutboxUnderFire runs outboxes whose processes are killed, stopped, disconnected, and have full disks, while
// files are put, renamed, written, edited and replaced there. It checks that no file is lost, no object is
// wrong, no file is removed before its object exists, and no file is sent twice without need.
//
//	go test ./internal/e2e -run OutboxUnderFire -outbox-runs 1000 -outbox-seed 7 -v
func TestOutboxUnderFire(t *testing.T) {
	t.Parallel()
	random := seeded(t, *outboxSeed)
	total := boxTotals{faults: map[boxFault]int{}}
	for total.runs() < *outboxRuns && !t.Failed() {
		s := newBoxScene(t, random)
		for range 5 + random.IntN(10) {
			if total.runs() < *outboxRuns && !t.Failed() {
				total.faults[s.run()]++
			}
		}
		s.finish()
		total.add(s)
	}
	t.Logf("%d runs ended in a fault: %v", total.runs(), total.faults)
	t.Logf("%d files in %d scenes, %d versions, %d objects; %d were put twice by a caller that was killed", total.files, total.scenes, total.versions, total.objects, total.reput)
	t.Logf("%d files are lost, %d objects wrong, %d files removed before their object, %d objects sent twice", total.lost, total.wrong, total.early, total.twice)
	if total.lost+total.wrong+total.early+total.twice > 0 {
		t.Error("a promise is broken")
	}
}

// boxFault is how a run ends.
type boxFault int

const (
	boxKilled boxFault = iota
	boxStopped
	boxOutage
	boxLostReplies
	boxFullDisk
	boxTerminated
	boxFaults
)

func (f boxFault) String() string {
	return [...]string{"killed", "stopped", "outage", "lost replies", "full disk", "terminated"}[f]
}

// boxTotals are the results of all scenes.
type boxTotals struct {
	faults                                  map[boxFault]int
	scenes, files, versions, objects, reput int
	lost, wrong, early, twice               int
}

func (b *boxTotals) runs() (n int) {
	for _, k := range b.faults {
		n += k
	}
	return n
}

func (b *boxTotals) add(s *boxScene) {
	b.scenes++
	b.files += len(s.names)
	for _, f := range s.names {
		b.versions += len(f.versions)
		if f.reput {
			b.reput++
		}
	}
	b.objects += s.objects
	b.lost, b.wrong, b.early, b.twice = b.lost+s.lost, b.wrong+s.wrong, b.early+s.early, b.twice+s.twice
}

// boxFile is a name, and what was put under it.
type boxFile struct {
	versions []uint32 // CRC32C of each content, in order; each is recorded before it is visible
	busy     bool     // a producer works on it
	unsure   bool     // a producer failed: whether its version exists is not known
	reput    bool     // a put was killed and repeated, maybe after the file was uploaded

	generation int64  // of the object when it was last seen
	object     uint32 // its CRC32C
}

// boxScene is an outbox, its server, and what happened.
type boxScene struct {
	t      *testing.T
	random chance
	srv    *fakegcs.TestServer
	dir    string // of the outbox
	work   string // for the sources of put, on another file system if the disk is small
	moved  string // of --then=move; "" if files are not moved
	keep   bool
	small  bool // the disk can be filled
	args   []string

	mu      sync.Mutex // guards the rest
	names   map[string]*boxFile
	objects int

	lost, wrong, early, twice int
}

// boxSettle is --settle. A producer that closes a file and opens it again pauses for less between the two.
const boxSettle = 300 * time.Millisecond

func newBoxScene(t *testing.T, random chance) *boxScene {
	t.Helper()
	s := &boxScene{t: t, random: random, names: map[string]*boxFile{}, work: t.TempDir()}
	base := testsize.DiskDir(t)
	if random.IntN(2) == 0 && smallDisk(t, base, "64m") {
		s.small = true
	}
	s.dir = filepath.Join(base, "out")
	if err := os.Mkdir(s.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	s.srv = fakegcs.NewServer(t, &fakegcs.Options{
		CreateBuckets: true, NoMD5: true, NoIdempotencyTokens: true,
		Latency: time.Duration(random.IntN(10)) * time.Millisecond, OnRequest: s.observe,
	})
	s.args = []string{
		"outbox", "run", s.dir, "gs://demo/in", "-q", "--endpoint", s.srv.URL, "--state-dir", filepath.Join(s.work, "state"),
		"--settle", boxSettle.String(), "--rescan", "1s", "--max-wait", "100ms", "--chunk-size", "2MiB",
	}
	switch random.IntN(5) {
	case 0:
		s.keep = true
		s.args = append(s.args, "--then=keep")
	case 1:
		s.moved = filepath.Join(base, "moved")
		s.args = append(s.args, "--then=move="+s.moved)
	}
	if random.IntN(5) == 0 {
		s.args = append(s.args, "--ordered")
	}
	return s
}

// observe notes each object that is made.
func (s *boxScene) observe(r fakegcs.Request) {
	name, ours := strings.CutPrefix(r.Object, "in/")
	if !ours || r.Op == faults.OpGet {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.look(name)
}

// look compares the object of a name with what was put there. The caller holds mu.
func (s *boxScene) look(name string) {
	o, ok := s.srv.Object("demo", "in/"+name)
	f := s.names[name]
	switch {
	case !ok:
		return
	case f == nil || !slices.Contains(f.versions, uint32(o.CRC32C)):
		s.wrong++
		s.t.Errorf("object %s has %d bytes that were never put there", name, o.Size)
		return
	case f.generation == o.Generation:
		return
	}
	s.objects++
	if f.generation != 0 && f.object == uint32(o.CRC32C) && !f.reput {
		s.twice++
		s.t.Errorf("object %s was made twice with the same bytes", name)
	}
	f.generation, f.object = o.Generation, uint32(o.CRC32C)
}

// data returns new bytes. Sometimes they need a session.
func (s *boxScene) data() []byte {
	size := s.random.IntN(40 << 10)
	switch s.random.IntN(30) {
	case 0:
		size = 9<<20 + s.random.IntN(1<<20)
	case 1:
		size = 0
	}
	b := make([]byte, size)
	var key [32]byte
	for i := range key {
		key[i] = byte(s.random.Uint32())
	}
	_, _ = rand.NewChaCha8(key).Read(b)
	return b
}

// begin chooses a name, and records that it gets that content. It returns nil if a producer works on it.
func (s *boxScene) begin(content []byte, fresh bool) (string, *boxFile) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := fmt.Sprintf("f%04d", len(s.names))
	if s.random.IntN(3) == 0 {
		name = fmt.Sprintf("d%d/f%04d", s.random.IntN(3), len(s.names))
	}
	if !fresh && len(s.names) > 0 {
		var old []string
		for n := range s.names {
			old = append(old, n)
		}
		slices.Sort(old)
		name = old[s.random.IntN(len(old))]
	}
	f := s.names[name]
	if f == nil {
		f = &boxFile{}
		s.names[name] = f
	}
	if f.busy {
		return "", nil
	}
	f.busy = true
	f.versions = append(f.versions, chunk.Update(0, content))
	return name, f
}

// end records that a producer has finished.
func (s *boxScene) end(f *boxFile, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f.busy = false
	f.unsure = f.unsure || err != nil
}

// produce makes one file in a random way. It returns when the producer has finished.
func (s *boxScene) produce() {
	way := s.random.IntN(8)
	content := s.data()
	fresh := way < 4 || s.random.IntN(2) == 0
	name, f := s.begin(content, fresh)
	if f == nil {
		return
	}
	path := filepath.Join(s.dir, name)
	var err error
	switch {
	case way < 2 && fresh:
		err = s.putByProcess(name, f, content)
	case way < 3 && fresh:
		source := filepath.Join(s.work, "library")
		if err = os.WriteFile(source, content, 0o600); err == nil {
			err = outbox.Put(s.dir, source, name)
		}
	case way < 6:
		temp := filepath.Join(s.dir, ".incoming")
		if err = os.WriteFile(temp, content, 0o600); err == nil {
			err = os.MkdirAll(filepath.Dir(path), 0o700)
		}
		if err == nil {
			err = os.Rename(temp, path)
		}
	default:
		err = s.writeInPlace(path, f, content)
	}
	s.end(f, err)
	if err != nil && !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, errPut) {
		s.t.Errorf("producer: %v", err)
	}
}

// errPut is the error of a put that was refused.
var errPut = errors.New("put failed")

// putByProcess puts a file with the command, which is sometimes killed and repeated.
func (s *boxScene) putByProcess(name string, f *boxFile, content []byte) error {
	source := filepath.Join(s.work, "source")
	if err := os.WriteFile(source, content, 0o600); err != nil {
		return err
	}
	args := []string{"outbox", "put", source, s.dir, "--name", name}
	for s.random.IntN(3) == 0 {
		c := run(s.t, environment(), args...)
		time.Sleep(time.Duration(s.random.IntN(20)) * time.Millisecond)
		s.mu.Lock()
		f.reput = true
		s.mu.Unlock()
		c.Kill()
	}
	if c := run(s.t, environment(), args...); c.Wait() != 0 {
		if s.small {
			return errPut // the disk is full
		}
		s.t.Errorf("put: %s", c.output())
	}
	return nil
}

// writeInPlace writes a file under its name, with pauses.
func (s *boxScene) writeInPlace(path string, f *boxFile, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	half := len(content) / 2
	w, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	pause := func() { time.Sleep(time.Duration(s.random.IntN(30)) * time.Millisecond) }
	write := func(b []byte) {
		if err == nil {
			_, err = w.Write(b)
		}
	}
	pause()
	write(content[:half])
	if s.random.IntN(2) == 0 {
		closed := time.Now()
		if cerr := w.Close(); err != nil || cerr != nil {
			return cmp.Or(err, cerr)
		}
		pause()
		if w, err = os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0); err != nil {
			if time.Since(closed) > boxSettle/2 && errors.Is(err, fs.ErrNotExist) {
				return nil // this machine was too busy, and the half counted as complete
			}
			return err
		}
		if time.Since(closed) > boxSettle/2 {
			s.mu.Lock()
			f.versions = slices.Insert(f.versions, len(f.versions)-1, chunk.Update(0, content[:half]))
			s.mu.Unlock()
		}
	}
	pause()
	if s.random.IntN(4) == 0 {
		time.Sleep(boxSettle + 50*time.Millisecond) // it is open for writing all the time
	}
	write(content[half:])
	return cmp.Or(err, w.Close())
}

// run runs the outbox until a fault ends it.
func (s *boxScene) run() boxFault {
	s.t.Helper()
	for range s.random.IntN(4) {
		s.produce()
	}
	fault := boxFault(s.random.IntN(int(boxFaults)))
	if fault == boxFullDisk && !s.small {
		fault = boxKilled
	}
	c := run(s.t, environment(), s.args...)
	for range s.random.IntN(5) {
		s.produce()
	}
	wait := func(ms int) { time.Sleep(time.Duration(s.random.IntN(ms)) * time.Millisecond) }
	switch fault {
	case boxKilled:
		wait(300)
	case boxStopped:
		wait(150)
		c.Signal(syscall.SIGSTOP)
		s.produce()
		wait(100)
		if s.random.IntN(2) == 0 {
			c.Signal(syscall.SIGCONT)
			wait(200)
		}
	case boxOutage:
		action := faults.Action{Effect: faults.EffectStatus, Status: http.StatusServiceUnavailable}
		if s.random.IntN(2) == 0 {
			action = faults.Action{Effect: faults.EffectReset}
		}
		s.fault(faults.Fault{Times: -1, Do: action})
		s.produce()
		wait(300)
		if s.random.IntN(2) == 0 {
			s.srv.ClearFaults()
			wait(200)
		}
	case boxLostReplies:
		for _, op := range []faults.Op{faults.OpInsert, faults.OpPut, faults.OpFinalize} {
			s.fault(faults.Fault{Match: faults.Match{Op: op}, Skip: s.random.IntN(2), Times: 1 + s.random.IntN(2), Do: faults.Action{Effect: faults.EffectLoseReply}})
		}
		s.produce()
		wait(300)
	case boxFullDisk:
		free := s.fill()
		wait(300)
		if s.random.IntN(2) == 0 {
			free()
			s.produce()
			wait(150)
		}
		defer free()
	case boxTerminated:
		wait(200)
		s.terminate(c)
	}
	if fault != boxTerminated {
		if !c.Alive() {
			s.t.Errorf("%v: it ended by itself: %s", fault, c.output())
		}
		c.Kill()
	}
	s.srv.ClearFaults()
	s.check(fault)
	return fault
}

func (s *boxScene) fault(f faults.Fault) {
	if err := s.srv.AddFaults(f); err != nil {
		s.t.Fatal(err)
	}
}

// terminate sends SIGTERM, and checks that the process ends well and soon.
func (s *boxScene) terminate(c *child) {
	s.t.Helper()
	if !until(c.Done(), 5*time.Millisecond, func() bool { // otherwise it may not handle signals yet
		status, err := outbox.ReadStatus(s.dir)
		return err == nil && status.Running != nil && status.Running.PID == c.PID()
	}) {
		s.t.Errorf("it does not run: %s", c.output())
		return
	}
	began := time.Now()
	c.Signal(syscall.SIGTERM)
	code := c.Wait()
	if code != 0 {
		s.t.Errorf("after SIGTERM: %s", c.output())
	}
	if took := time.Since(began); took > 10*time.Second {
		s.t.Errorf("it ended %v after SIGTERM", took)
	}
}

// fill fills the disk.
func (s *boxScene) fill() (free func()) {
	s.t.Helper()
	path := filepath.Join(filepath.Dir(s.dir), "filler")
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		s.t.Fatal(err)
	}
	defer f.Close()
	for size := 1 << 20; size > 0; size /= 16 {
		for err = nil; err == nil; {
			_, err = f.Write(make([]byte, size))
		}
	}
	return func() { _ = os.Remove(path) }
}

// check checks that the latest version of each file is in the directory, or is the object.
func (s *boxScene) check(after boxFault) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, f := range s.names {
		if f.unsure {
			continue
		}
		want := f.versions[len(f.versions)-1]
		if o, ok := s.srv.Object("demo", "in/"+name); ok && uint32(o.CRC32C) == want {
			continue
		}
		if !s.has(name, want) {
			s.early++
			s.t.Errorf("%v: the latest version of %s is neither in the directory nor the object", after, name)
		}
	}
}

// has reports whether the outbox has a file with that content.
func (s *boxScene) has(name string, want uint32) bool {
	for _, at := range []string{name, ".outbox/removing/" + name, ".failed/" + name} {
		if b, err := os.ReadFile(filepath.Join(s.dir, at)); err == nil && chunk.Update(0, b) == want {
			return true
		}
	}
	return false
}

// finish runs the outbox until all is uploaded, and checks the objects.
func (s *boxScene) finish() {
	s.t.Helper()
	if s.t.Failed() {
		return
	}
	c := run(s.t, environment(), s.args...)
	began := time.Now()
	if !until(c.Done(), 20*time.Millisecond, s.uploaded) {
		s.t.Errorf("the files are not uploaded after %v: %s", time.Since(began), s.missing())
	}
	s.terminate(c)
	if c.Stderr() != "" && !strings.Contains(c.Stderr(), "trying again") {
		s.t.Logf("messages: %s", c.Stderr())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, f := range s.names {
		if f.unsure {
			continue
		}
		s.look(name)
		got, err := s.srv.ReadObject("demo", "in/"+name)
		if err != nil || chunk.Update(0, got) != f.versions[len(f.versions)-1] {
			s.lost++
			s.t.Errorf("%s: the object has %d bytes, %v, which are not its latest version", name, len(got), err)
		}
	}
	for _, place := range []string{".failed", ".outbox/removing"} {
		_ = filepath.WalkDir(filepath.Join(s.dir, place), func(path string, entry fs.DirEntry, err error) error {
			if err == nil && !entry.IsDir() {
				s.t.Errorf("%s is left", path)
			}
			return nil
		})
	}
}

// uploaded reports whether the latest version of each file is an object, and no file is left that should not be.
func (s *boxScene) uploaded() bool { return s.missing() == "" }

// missing names a file that is not uploaded, or is left.
func (s *boxScene) missing() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, f := range s.names {
		if f.unsure {
			continue
		}
		if o, ok := s.srv.Object("demo", "in/"+name); !ok || uint32(o.CRC32C) != f.versions[len(f.versions)-1] {
			return name + " is not uploaded"
		}
		if _, err := os.Lstat(filepath.Join(s.dir, name)); (err == nil) != s.keep {
			return name + " is left, or not kept"
		}
	}
	return ""
}
