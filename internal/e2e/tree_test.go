//go:build unix

package e2e_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/require"
	"gcsup/internal/testsize"
	"gcsup/session/state"
)

var (
	treeFiles = flag.Int("tree-files", testsize.Full(500, 200), "how many small files the tree has")
	treeKills = flag.Int("tree-kills", testsize.Full(3, 2), "how many times to kill the upload of the tree")
)

// treeJobs is the --jobs of the upload of a tree.
const treeJobs = 8

// TestManifestSurvivesKills uploads a tree with --manifest, and kills the process with SIGKILL at seeded moments. It
// checks that a file is sent again only if it was in flight at a kill, and committed bytes only if the upload had ended,
// and was no longer saved, when a kill prevented its record.
//
//	go test ./internal/e2e -run ManifestSurvivesKills -tree-files 50000 -tree-kills 20 -kill-seed 7 -v
func TestManifestSurvivesKills(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	u := &treeUpload{
		emulator: startEmulator(t), random: seeded(t, *killSeed), root: filepath.Join(dir, "tree"), manifest: filepath.Join(dir, "run.jsonl"),
		state: filepath.Join(dir, "state"), files: map[string]string{}, recorded: map[string]time.Time{}, saved: map[string]time.Time{},
	}
	u.makeFiles(*treeFiles, testsize.Full(2, 1)+*treeFiles/10000)
	begin := func() *child {
		return run(t, environment(), "cp", "-r", "--quiet", "--jobs", fmt.Sprint(treeJobs), "--manifest", u.manifest,
			"--state-dir", u.state, "--endpoint", u.url, "--chunk-size", "1MiB", u.root+"/.", "gs://demo")
	}
	for u.kills < *treeKills && u.kill(begin()) {
		u.kills++
	}
	for range 2 { // the second run sends nothing, because all files are recorded
		if c := begin(); c.Wait() != 0 {
			t.Fatal(c.output())
		}
		u.readManifest()
	}
	if len(u.recorded) != len(u.files) {
		t.Errorf("the manifest has %d files as done, want %d", len(u.recorded), len(u.files))
	}
	u.complete(u.files)
	u.checkRequests()
}

// treeUpload is the upload of a tree, which is killed several times.
type treeUpload struct {
	*emulator
	random   chance
	root     string
	manifest string
	state    string
	files    map[string]string // the paths, by their names below root, which are those of the objects

	kills, torn int
	recorded    map[string]time.Time // by object: when its record was found in the manifest
	saved       map[string]time.Time // by object: after the last kill that left a saved upload
}

// makeFiles makes the files of the tree. A small file has up to 2 KiB, a large one more than 8 MiB.
func (u *treeUpload) makeFiles(small, large int) {
	dirs := 1 + small/100
	for i := range small + large {
		name, size := fmt.Sprintf("d%03d/f%06d", i%dirs, i), u.random.Int64N(2<<10)
		if i >= small { // in the middle of the order of the walk
			name, size = fmt.Sprintf("d%03d/large%d", u.random.IntN(dirs), i-small), 9*mib+u.random.Int64N(4*mib)
		}
		path := filepath.Join(u.root, name)
		if i < dirs {
			require.NoError(u.t, os.MkdirAll(filepath.Dir(path), 0o700))
		}
		source(u.t, path, size, u.random.Uint64())
		u.files[name] = path
	}
}

// kill kills the upload. It returns false if the upload ended before.
func (u *treeUpload) kill(c *child) bool {
	u.t.Helper()
	if u.random.oneIn(5) {
		// Kill it at the start, maybe before the first file, or while the manifest is read.
		u.random.pause(60 * time.Millisecond)
	} else {
		// Kill it after about the same number of files each time. A record has about 300 bytes.
		left := int64(len(u.files)-len(u.recorded)) / int64(*treeKills-u.kills+1)
		aim := u.size() + 300*u.random.Int64N(max(1, 2*left))
		until(c.Done(), 200*time.Microsecond, func() bool { return u.size() >= aim })
		u.random.pause(2 * time.Millisecond)
	}
	killed := c.kill()
	if !killed && c.Wait() != 0 {
		u.t.Fatal(c.output())
	}
	u.readManifest()
	u.readSaved()
	return killed
}

func (u *treeUpload) size() int64 {
	info, err := os.Stat(u.manifest)
	if err != nil {
		return 0
	}
	return info.Size()
}

// readManifest notes the files that the manifest records as done.
func (u *treeUpload) readManifest() {
	u.t.Helper()
	data, err := os.ReadFile(u.manifest)
	if err != nil && !os.IsNotExist(err) {
		u.t.Fatal(err)
	}
	for text := range strings.Lines(string(data)) {
		if !strings.HasSuffix(text, "\n") {
			u.torn++
			continue
		}
		var r struct{ Status, Destination string }
		err := json.Unmarshal([]byte(text), &r)
		name, ok := strings.CutPrefix(r.Destination, "gs://demo/")
		if err != nil || !ok || r.Status != "done" {
			u.t.Errorf("manifest: %q is not the record of an upload: %v", text, err)
		} else if u.recorded[name].IsZero() {
			u.recorded[name] = time.Now()
		}
	}
}

// readSaved notes the objects of the saved uploads.
func (u *treeUpload) readSaved() {
	u.t.Helper()
	store, err := state.OpenDir(u.state)
	require.NoError(u.t, err)
	defer store.Close()
	ids, err := store.List(u.t.Context())
	require.NoError(u.t, err)
	for _, id := range ids {
		saved, err := store.Load(u.t.Context(), id)
		require.NoError(u.t, err)
		u.saved[saved.Spec.Object] = time.Now()
	}
}

// checkRequests checks that only files in flight were sent twice.
func (u *treeUpload) checkRequests() {
	u.t.Helper()
	of := map[string][]fakegcs.Request{}
	again := 0
	for _, r := range u.requests() {
		switch r.Op {
		case faults.OpInsert, faults.OpStart, faults.OpPut, faults.OpFinalize, faults.OpQuery:
		default:
			continue // of this test
		}
		of[r.Object] = append(of[r.Object], r)
		if at, ok := u.recorded[r.Object]; ok && r.Time.After(at) {
			u.t.Errorf("%s of %s after its record was in the manifest", r.Op, r.Object)
		}
	}
	if len(of) != len(u.files) {
		u.t.Errorf("%d files were sent, want %d", len(of), len(u.files))
	}
	for name, requests := range of {
		sent := 0
		for _, r := range requests {
			if r.Op == faults.OpInsert || r.Op == faults.OpFinalize {
				sent++
			}
		}
		again += max(sent-1, 0)
		for _, upload := range u.uploads(name, requests) {
			if l := account(u.t, upload, nil); l.again > 0 {
				u.t.Errorf("%s: %d committed bytes were sent again", name, l.again)
			}
		}
	}
	u.t.Logf("%d files, %d kills, %d torn last lines; %d files were sent twice, at most %d were in flight", len(u.files), u.kills, u.torn, again, u.kills*treeJobs)
	if again > u.kills*treeJobs {
		u.t.Errorf("%d files were sent twice after %d kills, want at most %d for each", again, u.kills, treeJobs)
	}
}

// uploads divides the requests for an object after each one that made it, unless a later kill left a saved upload.
func (u *treeUpload) uploads(name string, requests []fakegcs.Request) (uploads [][]fakegcs.Request) {
	begin := 0
	for i, r := range requests {
		if r.Op == faults.OpFinalize && r.Status == http.StatusOK && u.saved[name].Before(r.Time.Add(r.Elapsed)) {
			uploads, begin = append(uploads, requests[begin:i+1]), i+1
		}
	}
	return append(uploads, requests[begin:])
}
