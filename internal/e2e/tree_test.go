//go:build unix

package e2e_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"gcsup/fakegcs/faults"
	"gcsup/internal/testsize"
)

var (
	treeFiles = flag.Int("tree-files", testsize.Full(500, 200), "how many small files the tree has")
	treeKills = flag.Int("tree-kills", testsize.Full(3, 2), "how many times to kill the upload of the tree")
)

// treeJobs is the --jobs of the upload of a tree.
const treeJobs = 8

// TestManifestSurvivesKills uploads a tree with --manifest, and kills the process
// with SIGKILL at seeded moments. It checks that each object has the bytes of its
// file, and that a file is sent again only if it was in flight at a kill.
//
//	go test ./internal/e2e -run ManifestSurvivesKills -tree-files 50000 -tree-kills 20 -kill-seed 7 -v
func TestManifestSurvivesKills(t *testing.T) {
	t.Parallel()
	files, kills := *treeFiles, *treeKills
	if testing.Short() {
		files, kills = min(files, 100), min(kills, 1)
	}
	dir := t.TempDir()
	u := &treeUpload{
		t: t, random: seeded(t, *killSeed), e: startEmulator(t),
		root: filepath.Join(dir, "tree"), manifest: filepath.Join(dir, "run.jsonl"),
		recorded: map[string]int{},
	}
	u.makeFiles(files, testsize.Full(2, 1)+files/10000)
	u.args = []string{
		"cp", "-r", "--quiet", "--jobs", fmt.Sprint(treeJobs), "--manifest", u.manifest, "--state-dir", filepath.Join(dir, "state"),
		"--endpoint", u.e.url, "--chunk-size", "1MiB", u.root + "/.", "gs://demo",
	}
	for u.kills < kills {
		if !u.kill(kills) {
			break
		}
	}
	last := run(t, environment(), u.args...)
	if last.Wait() != 0 {
		t.Fatal(last.output())
	}
	u.readManifest(u.kills + 1)
	if len(u.recorded) != len(u.files) {
		t.Errorf("the manifest has %d files as done, want %d", len(u.recorded), len(u.files))
	}

	// A further run sends nothing.
	finished := time.Now()
	if again := run(t, environment(), u.args...); again.Wait() != 0 {
		t.Fatal(again.output())
	}
	u.checkObjects()
	u.checkRequests(finished)
}

// treeUpload is the upload of a tree, which is killed several times.
type treeUpload struct {
	t        *testing.T
	random   chance
	e        *emulator
	root     string
	manifest string
	args     []string
	files    []string // below root; the names of the objects

	kills, torn int
	killed      []time.Time    // the moment after each kill
	recorded    map[string]int // by object: the kill that found its record, from 1
}

// makeFiles makes the files of the tree. A small file has up to 2 KiB, a large one
// more than 8 MiB.
func (u *treeUpload) makeFiles(small, large int) {
	var last string
	for i := range small + large {
		name := fmt.Sprintf("d%03d/f%06d", i%(1+small/100), i)
		size := u.random.Int64N(2 << 10)
		if i >= small {
			// In the middle of the order of the walk.
			name, size = fmt.Sprintf("d%03d/large%d", u.random.IntN(1+small/100), i-small), 9<<20+u.random.Int64N(4<<20)
		}
		path := filepath.Join(u.root, name)
		if parent := filepath.Dir(path); parent != last {
			if err := os.MkdirAll(parent, 0o700); err != nil {
				u.t.Fatal(err)
			}
			last = parent
		}
		source(u.t, path, size, u.random.Uint64())
		u.files = append(u.files, name)
	}
}

// kill starts the upload and kills it. It returns false if the upload ended before.
func (u *treeUpload) kill(kills int) bool {
	u.t.Helper()
	c := run(u.t, environment(), u.args...)
	if u.random.IntN(5) == 0 {
		// Kill it at the start, maybe before the first file, or while the manifest is read.
		time.Sleep(time.Duration(u.random.Int64N(int64(60 * time.Millisecond))))
	} else {
		// Kill it after about the same number of files each time. A record has about 300
		// bytes.
		left := int64(len(u.files)-len(u.recorded)) / int64(kills-u.kills+1)
		aim := u.size() + 300*u.random.Int64N(max(1, 2*left))
		until(c.Done(), 200*time.Microsecond, func() bool { return u.size() >= aim })
		time.Sleep(time.Duration(u.random.Int64N(int64(2 * time.Millisecond))))
	}
	c.Kill()
	if c.Wait() != -1 {
		if c.Wait() != 0 {
			u.t.Fatal(c.output())
		}
		return false
	}
	u.kills++
	u.readManifest(u.kills)
	u.killed = append(u.killed, time.Now())
	return true
}

func (u *treeUpload) size() int64 {
	info, err := os.Stat(u.manifest)
	if err != nil {
		return 0
	}
	return info.Size()
}

// readManifest counts the files that the manifest records as done. The new ones were
// recorded before the given kill, counted from 1.
func (u *treeUpload) readManifest(before int) {
	data, err := os.ReadFile(u.manifest)
	if err != nil && !os.IsNotExist(err) {
		u.t.Fatal(err)
	}
	if len(data) > 0 && data[len(data)-1] != '\n' {
		u.torn++
	}
	for text := range strings.Lines(string(data)) {
		var r struct{ Status, Destination string }
		if !strings.HasSuffix(text, "\n") {
			continue
		}
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			u.t.Errorf("manifest: %q: %v", text, err)
			continue
		}
		name, ok := strings.CutPrefix(r.Destination, "gs://demo/")
		if !ok || r.Status != "done" {
			u.t.Errorf("manifest: %q is not the record of an upload", text)
			continue
		}
		if _, ok := u.recorded[name]; !ok {
			u.recorded[name] = before
		}
	}
}

// checkObjects compares each object with its file.
func (u *treeUpload) checkObjects() {
	names := make(chan string)
	var group sync.WaitGroup
	var mu sync.Mutex
	wrong := 0
	for range 4 {
		group.Go(func() {
			for name := range names {
				want, err := os.ReadFile(filepath.Join(u.root, name))
				got, ok := u.e.object(strings.ReplaceAll(name, "/", "%2F"))
				if err != nil || !ok || !bytes.Equal(got, want) {
					mu.Lock()
					wrong++
					mu.Unlock()
					u.t.Errorf("%s: object has %d bytes (exists: %v), want the %d bytes of the file (%v)", name, len(got), ok, len(want), err)
				}
			}
		})
	}
	for _, name := range u.files {
		names <- name
	}
	close(names)
	group.Wait()
	u.t.Logf("%d objects, %d wrong", len(u.files), wrong)
}

// checkRequests checks that only files in flight were sent twice. finished is when
// everything was uploaded.
func (u *treeUpload) checkRequests(finished time.Time) {
	sent := map[string]int{}
	var requests, starts, again int
	for _, r := range u.e.requests() {
		switch r.Op {
		case faults.OpInsert, faults.OpFinalize:
			if sent[r.Object]++; sent[r.Object] > 1 {
				again++
			}
		case faults.OpStart:
			starts++
		case faults.OpPut, faults.OpQuery:
		default:
			continue // of this test
		}
		requests++
		if r.Time.After(finished) {
			u.t.Errorf("%s of %s after all files were finished", r.Op, r.Object)
		}
		if n, ok := u.recorded[r.Object]; ok && n <= len(u.killed) && r.Time.After(u.killed[n-1]) {
			u.t.Errorf("%s of %s after its record was in the manifest", r.Op, r.Object)
		}
	}
	if len(sent) != len(u.files) {
		u.t.Errorf("%d files were sent, want %d", len(sent), len(u.files))
	}
	u.t.Logf("%d kills, %d torn last lines; %d requests, %d sessions; %d files were sent twice, at most %d were in flight",
		u.kills, u.torn, requests, starts, again, u.kills*treeJobs)
	if again > u.kills*treeJobs {
		u.t.Errorf("%d files were sent twice after %d kills, want at most %d for each", again, u.kills, treeJobs)
	}
}
