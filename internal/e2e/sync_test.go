//go:build unix

package e2e_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"gcsup/chunk"
	"gcsup/fakegcs/faults"
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
	rounds := *syncRounds
	if testing.Short() {
		rounds = min(rounds, 3)
	}
	s := newSyncTest(t)
	for round := range rounds {
		s.round(round)
		if t.Failed() {
			break
		}
	}
	t.Logf("%d rounds, %d runs killed or interrupted, %d of them between two deletions, %d faults, %d files uploaded, %d objects deleted", rounds, s.killed, s.between, s.faults, s.uploaded, s.deleted)
	if rounds >= 100 && (s.between == 0 || s.faults == 0 || s.deleted == 0) {
		t.Error("the rounds were too easy")
	}
}

// syncTest is the state of TestSync.
type syncTest struct {
	t       *testing.T
	random  chance
	e       *emulator
	root    string
	dir     *os.Root // of root: the edits must not follow the links that they make
	args    []string
	outside map[string]syncObject // must never change

	killed, between, faults, uploaded, deleted int
}

// syncObject is an object as a listing describes it.
type syncObject struct {
	Name       string `json:"name"`
	Size       int64  `json:"size,string"`
	Generation string `json:"generation"`
	CRC32C     string `json:"crc32c"`
}

func newSyncTest(t *testing.T) *syncTest {
	t.Helper()
	dir := testsize.DiskDir(t)
	s := &syncTest{t: t, random: seeded(t, *syncSeed), e: startEmulator(t), root: filepath.Join(dir, "root")}
	s.args = []string{
		"sync", "--delete", "--max-delete", "100%", "--exclude", "*.tmp", "--json", "--quiet", "--max-wait", "20ms", "--retry-for", "30s",
		"--state-dir", filepath.Join(dir, "state"), "--endpoint", s.e.url, s.root, "gs://demo/" + strings.TrimSuffix(syncPrefix, "/"),
	}
	s.must(os.Mkdir(s.root, 0o700))
	var err error
	s.dir, err = os.OpenRoot(s.root)
	s.must(err)
	t.Cleanup(func() { _ = s.dir.Close() })
	s.must(s.write("keep"))
	for _, name := range []string{"p", "p.x", "p-/x", "p0", "pq/x", "o/x", "gcsup-parts/x/1", "P/keep"} {
		s.put(name, 10)
	}
	s.outside, _ = s.objects()
	return s
}

func (s *syncTest) must(errs ...error) {
	s.t.Helper()
	for _, err := range errs {
		if err != nil {
			s.t.Fatal(err)
		}
	}
}

// write writes a file of random bytes. Few sizes are possible, so that a change often keeps the size.
func (s *syncTest) write(name string) error {
	if info, err := s.dir.Lstat(name); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		_ = s.dir.Remove(name) // to open a FIFO would wait for its reader
	}
	if err := s.dir.MkdirAll(path.Dir(name), 0o700); err != nil {
		return err
	}
	data := make([]byte, s.random.IntN(4)*s.random.IntN(500))
	if s.random.IntN(100) == 0 {
		data = make([]byte, 9<<20)
	}
	for i := range min(len(data), 100) {
		data[i] = byte(s.random.Uint32())
	}
	return s.dir.WriteFile(name, data, 0o600)
}

// put writes an object of random bytes.
func (s *syncTest) put(name string, size int) {
	s.t.Helper()
	data := make([]byte, size)
	for i := range data {
		data[i] = byte(s.random.Uint32())
	}
	target := "/upload/storage/v1/b/demo/o?uploadType=media&name=" + url.QueryEscape(name)
	for range 20 { // faults concern this client, too
		if s.ask("POST", target, string(data), nil) == nil {
			return
		}
	}
	s.t.Fatalf("%s cannot be written", name)
}

// ask makes a request to the emulator and decodes the reply.
func (s *syncTest) ask(method, target, body string, reply any) error {
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.e.url+target, strings.NewReader(body))
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %s", method, target, resp.Status)
	}
	if reply == nil {
		return nil
	}
	return json.NewDecoder(resp.Body).Decode(reply)
}

// objects returns all objects: those outside of the prefix, and those below it by their name there.
func (s *syncTest) objects() (outside, below map[string]syncObject) {
	s.t.Helper()
	outside, below = map[string]syncObject{}, map[string]syncObject{}
	for token := ""; ; {
		var page struct {
			Items         []syncObject `json:"items"`
			NextPageToken string       `json:"nextPageToken"`
		}
		s.must(s.ask("GET", "/storage/v1/b/demo/o?pageToken="+url.QueryEscape(token), "", &page))
		for _, o := range page.Items {
			if name, ok := strings.CutPrefix(o.Name, syncPrefix); ok {
				below[name] = o
			} else {
				outside[o.Name] = o
			}
		}
		if token = page.NextPageToken; token == "" {
			return outside, below
		}
	}
}

// name returns a random name. Its characters are those around the slash in the order of bytes.
func (s *syncTest) name() string {
	pick := func(list ...string) string { return list[s.random.IntN(len(list))] }
	var elements []string
	for range 1 + s.random.IntN(3) {
		elements = append(elements, pick("a", "b", "c")+pick("", "", "", ".", "-", "0", "!", " x", "é", ".tmp"))
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
				_ = s.dir.RemoveAll([]string{name, first}[s.random.IntN(2)])
				_ = s.write(name)
			}
		case 3:
			_ = s.dir.RemoveAll(name)
		case 4:
			_ = s.dir.Rename(name, s.name())
		case 5:
			if s.random.IntN(2) == 0 {
				_ = s.dir.Symlink("/etc", name)
			} else {
				_ = syscall.Mkfifo(filepath.Join(s.root, "fifo"), 0o600)
				_ = s.dir.Rename("fifo", name)
			}
		case 6:
			s.put(syncPrefix+name, s.random.IntN(400))
		case 7:
			if s.random.IntN(4) == 0 {
				name = []string{name + "/", "up-1.gcsup", "tmp/x.gcsup"}[s.random.IntN(3)]
				s.put(syncPrefix+name, 0)
				continue
			}
			for range s.random.IntN(30) { // many deletions, so that a kill is often between two of them
				s.put(syncPrefix+s.name()+fmt.Sprint(s.random.IntN(100)), 5)
			}
		}
	}
}

// files returns the expected objects of the files, and the names of entries that are skipped.
func (s *syncTest) files() (files map[string]syncObject, skipped []string) {
	s.t.Helper()
	files = map[string]syncObject{}
	s.must(filepath.WalkDir(s.root, func(file string, d fs.DirEntry, err error) error {
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
		files[name] = syncObject{Name: syncPrefix + name, Size: int64(len(data)), CRC32C: chunk.EncodeCRC32C(chunk.Update(0, data))}
		return err
	}))
	return files, skipped
}

func excludedFromSync(name string) bool {
	return slices.ContainsFunc(strings.Split(name, "/"), func(element string) bool { return strings.HasSuffix(element, ".tmp") })
}

// protected reports whether an object without a file is not deleted.
func (o syncObject) protected(skipped []string) bool {
	name := strings.TrimPrefix(o.Name, syncPrefix)
	return excludedFromSync(name) || o.Size == 0 && strings.HasSuffix(name, "/") || strings.HasSuffix(name, ".gcsup") ||
		slices.ContainsFunc(skipped, func(s string) bool { return name == s || strings.HasPrefix(name, s+"/") })
}

// same reports whether an object has the bytes of a file.
func (o syncObject) same(file syncObject) bool { return o.Size == file.Size && o.CRC32C == file.CRC32C }

// plant adds faults for the next run.
func (s *syncTest) plant() {
	s.t.Helper()
	var plan []faults.Fault
	for range s.random.IntN(4) {
		op := []faults.Op{faults.OpDelete, faults.OpDelete, faults.OpInsert, faults.OpList}[s.random.IntN(4)]
		do := []faults.Action{
			{Effect: faults.EffectStatus, Status: 503}, {Effect: faults.EffectStatus, Status: 429}, {Effect: faults.EffectLoseReply}, {Effect: faults.EffectReset},
			{Effect: faults.EffectStatus, Status: 404, Body: "<html>a proxy</html>"}, {Effect: faults.EffectTruncateReply, Bytes: 20},
		}[s.random.IntN(6)]
		if op != faults.OpDelete && do.Status == 404 {
			do = faults.Action{Effect: faults.EffectClose} // at first contact, the destination may be wrong
		}
		n := 1 + s.random.IntN(3)
		s.faults += n
		plan = append(plan, faults.Fault{Match: faults.Match{Op: op}, Skip: s.random.IntN(5), Times: n, Do: do})
	}
	if s.random.IntN(2) == 0 {
		plan = append(plan, faults.Fault{Match: faults.Match{Op: faults.OpDelete}, Times: -1, Do: faults.Action{Effect: faults.EffectDelay, For: 3 * time.Millisecond}})
	}
	if len(plan) > 0 {
		s.e.plant(plan...)
	}
}

// round changes everything, runs sync some times, and checks the result.
func (s *syncTest) round(n int) {
	s.t.Helper()
	s.edit()
	for range s.random.IntN(3) {
		s.interrupted()
	}
	files, skipped := s.files()
	_, before := s.objects()
	planned := s.plan(before)
	s.plant()
	c := run(s.t, environment(), s.args...)
	if c.Wait() != 0 {
		s.t.Fatalf("round %d: %s", n, c.output())
	}
	s.e.release()
	outside, after := s.objects()
	s.compare("outside", outside, s.outside)
	want := map[string]syncObject{}
	for name, o := range before {
		if _, ok := files[name]; !ok && o.protected(skipped) {
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
	for name, file := range files {
		if was, ok := before[name]; ok && was.same(file) {
			want[name] = was // not uploaded again
			continue
		}
		s.uploaded++
		file.Generation = after[name].Generation
		want[name] = file
	}
	s.compare("below the prefix", after, want)
	if s.t.Failed() {
		s.t.Logf("round %d: %s", n, c.output())
		return
	}
	args := append([]string{"verify", "-r", "--extra", "--exclude", "*.tmp", "--endpoint", s.e.url}, s.root+"/.", "gs://demo/"+syncPrefix)
	if v := run(s.t, environment(), args...); n%5 == 0 && v.Wait() != 0 {
		s.t.Errorf("round %d: %s", n, v.output())
	}
}

// plan returns the names that --dry-run would delete. It changes nothing.
func (s *syncTest) plan(before map[string]syncObject) map[string]bool {
	s.t.Helper()
	c := run(s.t, environment(), append([]string{s.args[0], "--dry-run"}, s.args[1:]...)...)
	if c.Wait() != 0 {
		s.t.Fatal(c.output())
	}
	_, after := s.objects()
	s.compare("after --dry-run", after, before)
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
	files, skipped := s.files()
	_, before := s.objects()
	s.plant()
	c := run(s.t, environment(), s.args...)
	time.Sleep(time.Duration(s.random.Int64N(int64(60 * time.Millisecond))))
	written := map[string]bool{}
	for range s.random.IntN(3) {
		name := s.name()
		written[name] = true
		s.put(syncPrefix+name, 7)
	}
	time.Sleep(time.Duration(s.random.Int64N(int64(30 * time.Millisecond))))
	if s.random.IntN(4) == 0 {
		c.Signal(os.Interrupt)
		c.Wait()
	} else {
		c.Kill()
	}
	s.e.release()
	outside, after := s.objects()
	s.compare("outside, after a kill", outside, s.outside)
	gone, left, uploaded := 0, 0, true
	for name, file := range files {
		if was, ok := before[name]; ok && was.same(file) && !written[name] && after[name] != was {
			s.t.Errorf("after a kill: %s is %+v, want %+v", name, after[name], was)
		}
		uploaded = uploaded && (written[name] || after[name].same(file))
	}
	for name, o := range before {
		_, has := files[name]
		_, exists := after[name]
		switch {
		case has || written[name]:
		case exists:
			left++
		case o.protected(skipped):
			s.t.Errorf("after a kill: the protected object %s is deleted", name)
		default:
			gone++
		}
	}
	if gone > 0 && !uploaded {
		s.t.Errorf("after a kill: %d objects are deleted, but not all files are uploaded", gone)
	}
	if s.t.Failed() {
		s.t.Log(c.output())
	}
	if code := c.Wait(); code == -1 || code == 75 {
		s.killed++
		if gone > 0 && left > 0 {
			s.between++
		}
	}
}

// compare reports the differences between objects.
func (s *syncTest) compare(what string, got, want map[string]syncObject) {
	s.t.Helper()
	for name, o := range want {
		if got[name] != o {
			s.t.Errorf("%s: %q is %+v, want %+v", what, name, got[name], o)
		}
	}
	for name, o := range got {
		if _, ok := want[name]; !ok {
			s.t.Errorf("%s: %q is %+v, want none", what, name, o)
		}
	}
}
