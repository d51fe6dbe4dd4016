package e2e_test

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/checksum"
	"gcsup/internal/require"
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
	random, ended := seeded(t, *outboxSeed), map[string]int{}
	var scenes, files, versions, objects, reput int
	for runs := 0; runs < *outboxRuns && !t.Failed(); scenes++ {
		s := newBoxScene(t, random)
		for range min(5+random.IntN(10), *outboxRuns-runs) {
			runs++
			ended[s.run()]++
		}
		s.finish()
		s.mu.Lock()
		files, objects = files+len(s.names), objects+s.objects
		for _, f := range s.names {
			versions += len(f.versions)
			if f.reput {
				reput++
			}
		}
		s.mu.Unlock()
	}
	t.Logf("runs ended in faults: %v", ended)
	t.Logf("%d files in %d scenes, %d versions, %d objects; %d were put twice by a caller that was killed", files, scenes, versions, objects, reput)
}

// boxFaults are the ways in which a run ends.
var boxFaults = []fault[*boxScene]{
	{"killed", func(s *boxScene, c *child) {
		s.random.pause(300 * time.Millisecond)
		s.kill(c)
	}},
	{"stopped", func(s *boxScene, c *child) {
		s.random.pause(150 * time.Millisecond)
		c.Signal(syscall.SIGSTOP)
		s.produce()
		s.random.pause(100 * time.Millisecond)
		if s.random.oneIn(2) {
			c.Signal(syscall.SIGCONT)
			s.random.pause(200 * time.Millisecond)
		}
		s.kill(c)
	}},
	{"outage", func(s *boxScene, c *child) {
		s.plant(faults.Fault{Times: -1, Do: pick(s.random, faults.Action{Effect: faults.EffectStatus, Status: http.StatusServiceUnavailable}, faults.Action{Effect: faults.EffectReset})})
		s.produce()
		s.random.pause(300 * time.Millisecond)
		if s.random.oneIn(2) {
			s.release()
			s.random.pause(200 * time.Millisecond)
		}
		s.kill(c)
	}},
	{"lost replies", func(s *boxScene, c *child) {
		for _, op := range []faults.Op{faults.OpInsert, faults.OpPut, faults.OpFinalize} {
			s.plant(faults.Fault{Match: faults.Match{Op: op}, Skip: s.random.IntN(2), Times: 1 + s.random.IntN(2), Do: faults.Action{Effect: faults.EffectLoseReply}})
		}
		s.produce()
		s.random.pause(300 * time.Millisecond)
		s.kill(c)
	}},
	{"terminated", func(s *boxScene, c *child) {
		s.random.pause(200 * time.Millisecond)
		s.terminate(c)
	}},
	{"full disk", func(s *boxScene, c *child) { // the last one: not each scene has a small disk
		free := fill(s.t, filepath.Dir(s.dir))
		s.random.pause(300 * time.Millisecond)
		if s.random.oneIn(2) {
			free()
			s.produce()
			s.random.pause(150 * time.Millisecond)
		}
		s.kill(c)
		free()
	}},
}

// boxFile is a name, and what was put under it.
type boxFile struct {
	versions []string // CRC32C of each content, in order; each is recorded before it is visible
	unsure   bool     // a producer failed: whether its version exists is not known
	reput    bool     // a put was killed and repeated, maybe after the file was uploaded
	object   object   // when it was last seen
}

// latest returns the CRC32C of the last content.
func (f *boxFile) latest() string { return f.versions[len(f.versions)-1] }

// boxScene is an outbox, its server, and what happened.
type boxScene struct {
	service
	random chance
	srv    *fakegcs.TestServer
	dir    string // of the outbox
	work   string // for the sources of put, on another file system if the disk is small
	keep   bool
	small  bool // the disk can be filled
	args   []string

	mu      sync.Mutex // guards the rest
	names   map[string]*boxFile
	objects int
}

// boxSettle is --settle. A producer that closes a file and opens it again pauses for less between the two.
const boxSettle = 300 * time.Millisecond

func newBoxScene(t *testing.T, random chance) *boxScene {
	t.Helper()
	base := testsize.DiskDir(t)
	s := &boxScene{random: random, names: map[string]*boxFile{}, work: t.TempDir(), dir: filepath.Join(base, "out"), small: random.oneIn(2) && smallDisk(t, base, "64m")}
	require.NoError(t, os.Mkdir(s.dir, 0o700))
	s.srv = fakegcs.NewServer(t, &fakegcs.Options{
		CreateBuckets: true, NoMD5: true, NoIdempotencyTokens: true, Latency: random.below(10 * time.Millisecond), OnRequest: s.observe,
	})
	s.service = service{t, s.srv.URL}
	s.args = []string{
		"outbox", "run", s.dir, "gs://demo/in", "-q", "--endpoint", s.url, "--state-dir", filepath.Join(s.work, "state"),
		"--settle", boxSettle.String(), "--rescan", "1s", "--max-wait", "100ms", "--chunk-size", "2MiB",
	}
	switch random.IntN(5) {
	case 0:
		s.keep = true
		s.args = append(s.args, "--then=keep")
	case 1:
		s.args = append(s.args, "--then=move="+filepath.Join(base, "moved"))
	}
	if random.oneIn(5) {
		s.args = append(s.args, "--ordered")
	}
	return s
}

// observe compares each object that is made with what was put there.
func (s *boxScene) observe(r fakegcs.Request) {
	name, ours := strings.CutPrefix(r.Object, "in/")
	if !ours || r.Op == faults.OpGet {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	got, ok := s.object(name)
	f := s.names[name]
	switch {
	case !ok:
		return
	case f == nil || !slices.Contains(f.versions, got.CRC32C):
		s.t.Errorf("object %s has %d bytes that were never put there", name, got.Size)
		return
	case f.object.Generation == got.Generation:
		return
	case f.object.CRC32C == got.CRC32C && !f.reput:
		s.t.Errorf("object %s was made twice with the same bytes", name)
	}
	s.objects++
	f.object = got
}

// object returns the object of a name.
func (s *boxScene) object(name string) (object, bool) {
	o, ok := s.srv.Object("demo", "in/"+name)
	return object{Name: name, Size: o.Size, Generation: fmt.Sprint(o.Generation), CRC32C: checksum.Encode(uint32(o.CRC32C))}, ok
}

// produce makes one file in a random way.
func (s *boxScene) produce() {
	s.t.Helper()
	size := s.random.IntN(40 << 10)
	switch s.random.IntN(30) {
	case 0:
		size = 9<<20 + s.random.IntN(1<<20) // it needs a session
	case 1:
		size = 0
	}
	content, way := s.random.bytes(size), s.random.IntN(8)
	name, f := s.name(sum(content), way < 4 || s.random.oneIn(2))
	path, temp := filepath.Join(s.dir, name), filepath.Join(s.dir, ".incoming")
	if way < 3 {
		temp = filepath.Join(s.work, "source")
	}
	var err error
	if way < 6 {
		err = os.WriteFile(temp, content, 0o600)
	}
	if err == nil {
		switch {
		case way < 2:
			err = s.putByProcess(temp, name, f)
		case way == 2:
			err = outbox.Put(s.dir, temp, name)
		case way < 6:
			if err = os.MkdirAll(filepath.Dir(path), 0o700); err == nil {
				err = os.Rename(temp, path)
			}
		default:
			err = s.writeInPlace(path, f, content)
		}
	}
	f.unsure = f.unsure || err != nil
	if err != nil && !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, errPut) {
		s.t.Errorf("producer: %v", err)
	}
}

// name chooses a name, and records that it gets that content.
func (s *boxScene) name(content string, fresh bool) (string, *boxFile) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := pick(s.random, "", "", fmt.Sprintf("d%d/", s.random.IntN(3))) + fmt.Sprintf("f%04d", len(s.names))
	if !fresh && len(s.names) > 0 {
		name = pick(s.random, slices.Sorted(maps.Keys(s.names))...)
	}
	f := s.names[name]
	if f == nil {
		f = &boxFile{}
		s.names[name] = f
	}
	f.versions = append(f.versions, content)
	return name, f
}

// errPut is the error of a put that was refused.
var errPut = errors.New("put failed")

// putByProcess puts a file with the command, which is sometimes killed and repeated.
func (s *boxScene) putByProcess(source, name string, f *boxFile) error {
	args := []string{"outbox", "put", source, s.dir, "--name", name}
	for s.random.oneIn(3) {
		c := run(s.t, environment(), args...)
		s.random.pause(20 * time.Millisecond)
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
	pause := func() { s.random.pause(30 * time.Millisecond) }
	write := func(b []byte) {
		if err == nil {
			_, err = w.Write(b)
		}
	}
	pause()
	write(content[:half])
	if s.random.oneIn(2) {
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
			f.versions = slices.Insert(f.versions, len(f.versions)-1, sum(content[:half]))
			s.mu.Unlock()
		}
	}
	pause()
	if s.random.oneIn(4) {
		time.Sleep(boxSettle + 50*time.Millisecond) // it is open for writing all the time
	}
	write(content[half:])
	return cmp.Or(err, w.Close())
}

// run runs the outbox until a fault ends it, whose name it returns.
func (s *boxScene) run() string {
	s.t.Helper()
	for range s.random.IntN(4) {
		s.produce()
	}
	list := boxFaults
	if !s.small {
		list = list[:len(list)-1]
	}
	f := pick(s.random, list...)
	c := run(s.t, environment(), s.args...)
	for range s.random.IntN(5) {
		s.produce()
	}
	f.do(s, c)
	s.release()

	// The latest version of each file is in the directory, or is the object.
	for name, file := range s.names {
		if o, ok := s.object(name); !file.unsure && (!ok || o.CRC32C != file.latest()) && !s.has(name, file.latest()) {
			s.t.Errorf("%s: the latest version of %s is neither in the directory nor the object", f.name, name)
		}
	}
	return f.name
}

// kill kills the process, which must be running.
func (s *boxScene) kill(c *child) {
	s.t.Helper()
	if !c.Alive() {
		s.t.Errorf("it ended by itself: %s", c.output())
	}
	c.Kill()
}

// has reports whether the outbox has a file with that content.
func (s *boxScene) has(name, content string) bool {
	return slices.ContainsFunc([]string{name, ".outbox/removing/" + name, ".failed/" + name}, func(at string) bool {
		b, err := os.ReadFile(filepath.Join(s.dir, at))
		return err == nil && sum(b) == content
	})
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
	if c.Wait() != 0 || time.Since(began) > 10*time.Second {
		s.t.Errorf("%v after SIGTERM: %s", time.Since(began), c.output())
	}
}

// finish runs the outbox until all is uploaded, and checks the objects.
func (s *boxScene) finish() {
	s.t.Helper()
	if s.t.Failed() {
		return
	}
	c := run(s.t, environment(), s.args...)
	if !until(c.Done(), 20*time.Millisecond, func() bool { return s.missing() == "" }) {
		s.t.Errorf("the files are not uploaded: %s", s.missing())
	}
	s.terminate(c)
	if c.Stderr() != "" && !strings.Contains(c.Stderr(), "trying again") {
		s.t.Logf("messages: %s", c.Stderr())
	}
	for name, f := range s.names {
		s.observe(fakegcs.Request{Object: "in/" + name})
		if got, err := s.srv.ReadObject("demo", "in/"+name); !f.unsure && (err != nil || sum(got) != f.latest()) {
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

// missing names a file that is not uploaded, or is left.
func (s *boxScene) missing() string {
	for name, f := range s.names {
		if f.unsure {
			continue
		}
		if o, ok := s.object(name); !ok || o.CRC32C != f.latest() {
			return name + " is not uploaded"
		}
		if _, err := os.Lstat(filepath.Join(s.dir, name)); (err == nil) != s.keep {
			return name + " is left, or not kept"
		}
	}
	return ""
}
