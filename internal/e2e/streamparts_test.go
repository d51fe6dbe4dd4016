//go:build unix

package e2e_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gcsup/internal/require"
	"gcsup/internal/testsize"
)

var streamKills = flag.Int("stream-kills", testsize.Full(20, 6), "how many processes that send a stream in parts to kill")

// TestStreamPartsKilled kills processes that send a stream in parts. There is no object of theirs, and what they left
// at the service is removed by the next stream, or by prune.
//
//	go test ./internal/e2e -run StreamPartsKilled -stream-kills 300 -kill-seed 7 -v
func TestStreamPartsKilled(t *testing.T) {
	t.Parallel()
	random := seeded(t, *killSeed)
	service := startEmulator(t, "--rate", fmt.Sprint(16*mib))
	dir := t.TempDir()
	state := []string{"--json", "--state-dir", filepath.Join(dir, "state"), "--endpoint", service.url}
	files, unmade := map[string]string{}, map[string]string{} // sources by object; unmade are those of killed processes
	stream := func(n int) (c *child, name string) {
		name = fmt.Sprint("s", n)
		path := filepath.Join(dir, name)
		least, auto := int64(17*mib), random.oneIn(3)
		if auto {
			least = 65 * mib // a shorter one has a session
		}
		content := source(t, path, least+random.Int64N(30*mib), random.Uint64())
		in, out, err := os.Pipe()
		require.NoError(t, err)
		args := append([]string{"cp", "-", "gs://demo/" + name}, state...)
		if !auto {
			args = append(args, "--parallel", fmt.Sprint(2+random.IntN(6)))
		}
		c = runWith(t, environment(), in, args...)
		in.Close()
		go func() {
			defer out.Close()
			_, _ = out.Write(content)
		}()
		files[name] = path
		return c, name
	}
	saved := func() (toRemove int) {
		c := runWith(t, environment(), nil, append([]string{"uploads", "list"}, state...)...)
		c.Wait()
		for _, line := range strings.Split(strings.TrimSpace(c.Stdout()), "\n") {
			var u struct {
				ID       string
				ToRemove bool `json:"to_remove"`
			}
			if line == "" {
				continue
			}
			if err := json.Unmarshal([]byte(line), &u); err != nil {
				t.Fatal(c.output())
			}
			if !u.ToRemove || !strings.HasPrefix(u.ID, "stream-") {
				t.Errorf("%s is saved", line)
			}
			toRemove++
		}
		return toRemove
	}
	killed, left, most := 0, 0, 0
	for n := 0; killed < *streamKills && !t.Failed(); n++ {
		c, name := stream(n)
		random.pause(1500 * time.Millisecond)
		c.Kill()
		if c.Wait() != 0 {
			killed++
			if service.identical(name, files[name]) {
				t.Logf("%s was made before the kill", name)
			} else {
				unmade[name] = files[name]
				delete(files, name)
			}
		}
		now := saved()
		if now > 1 { // each stream in parts removes what the ones before left, while it sends its own
			t.Logf("%d are left", now)
		}
		left, most = left+min(now, 1), max(most, now)
	}
	if random.oneIn(2) {
		c, name := stream(killed + 1000)
		if c.Wait() != 0 {
			t.Errorf("%s: %s", name, c.output())
		}
	} else if prune := runWith(t, environment(), nil, append([]string{"uploads", "prune"}, state...)...); prune.Wait() != 0 {
		t.Error(prune.output())
	}
	if n := saved(); n != 0 {
		t.Errorf("%d uploads are saved", n)
	}
	for name, path := range unmade {
		if service.identical(name, path) { // by the last request, which was under way at the kill
			files[name] = path
		}
	}
	empty := service.complete(files)
	t.Logf("%d killed, after %d of them something was saved, at most %d uploads at a time; %d multipart uploads without a part left", killed, left, most, empty)
	if left == 0 {
		t.Error("no process was killed while it sent parts")
	}
}
