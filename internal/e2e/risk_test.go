//go:build unix

package e2e_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gcsup/internal/require"
)

var (
	riskSize = flag.Int64("risk-mib", 1024, "size in MiB of the file of TestBytesAtRisk")
	riskRuns = flag.Int("risk-runs", 0, "how many times TestBytesAtRisk interrupts an upload over each link; with 0, TestShortRuns does not run, either")
	riskIdle = flag.Duration("risk-idle", 0, "how long the emulator of TestBytesAtRisk is idle before the upload")
)

// TestBytesAtRisk interrupts uploads with default flags over slow links, when the service has two
// thirds of the file. It checks how much of what the service received is not committed.
//
//	go test ./internal/e2e -run BytesAtRisk -risk-runs 10 -risk-idle 20s -v
func TestBytesAtRisk(t *testing.T) {
	t.Parallel()
	if *riskRuns == 0 {
		t.Skip("takes minutes, because the links are slow: see make risk")
	}
	for _, link := range []struct {
		name  string
		flags []string
		files int
		most  int64 // bytes at risk
		args  []string
	}{
		{"10 MiB/s", []string{"--total-rate", "10MiB"}, 1, 128 << 20, nil},
		{"10 MiB/s by compose", []string{"--total-rate", "10MiB"}, 1, 16 << 20, []string{"--parallel-by", "compose"}},
		{"two uploads at 10 MiB/s", []string{"--total-rate", "10MiB"}, 2, 2 * 128 << 20, nil},

		// With as many connections as begin before the end, the rate is more than 50 MiB/s.
		{"2 MiB/s for each connection", []string{"--rate", "2MiB", "--latency", "10ms"}, 1, 512 << 20, nil},
	} {
		t.Run(link.name, func(t *testing.T) {
			t.Parallel()
			for run := range *riskRuns {
				e := startEmulator(t, link.flags...)
				time.Sleep(*riskIdle)
				received, committed := e.interruptAt(t, *riskSize<<20, link.files, 0.66, link.args)
				t.Logf("run %d: received %d MiB, committed %d MiB, at risk %d MiB", run+1, received>>20, committed>>20, (received-committed)>>20)
				if received-committed > link.most {
					t.Errorf("%d MiB were at risk, want at most %d", (received-committed)>>20, link.most>>20)
				}
				e.child.Kill()
				_ = os.RemoveAll(e.dir)
			}
		})
	}
}

// interruptAt uploads files of size bytes, each with a process of its own, and interrupts the processes when
// the service has that part of them. It returns how many bytes the service had then, and how many of
// them are committed afterwards.
func (e *emulator) interruptAt(t *testing.T, size int64, files int, part float64, args []string) (received, committed int64) {
	t.Helper()
	dir, err := os.MkdirTemp(t.TempDir(), "")
	require.NoError(t, err)
	defer os.RemoveAll(dir)
	path, state := filepath.Join(dir, "source"), filepath.Join(dir, "state")
	source(t, path, size, rand.Uint64())
	var all []*child
	for i := range files {
		all = append(all, run(t, environment(), append([]string{"cp", "--json", "--state-dir", state, "--endpoint", e.url, path, fmt.Sprintf("gs://demo/x%d", i)}, args...)...))
	}
	if !until(all[0].Done(), 10*time.Millisecond, func() bool { return float64(e.held()) >= part*float64(size)*float64(files) }) {
		t.Fatal(all[0].output())
	}
	received = e.held()
	for _, c := range all {
		c.Signal(os.Interrupt)
	}
	for _, c := range all {
		if c.Wait() == 0 { // one of two uploads may end earlier
			committed += size
		}
	}
	committed += e.committed(t, state)
	return received, committed
}

// committed returns how many bytes of the saved uploads in a state directory are committed.
func (e *emulator) committed(t *testing.T, state string) (committed int64) {
	t.Helper()
	list := run(t, environment(), "uploads", "list", "--refresh", "--json", "--state-dir", state, "--endpoint", e.url)
	list.Wait()
	for text := range strings.Lines(list.Stdout()) {
		var saved struct{ Committed int64 }
		if err := json.Unmarshal([]byte(text), &saved); err != nil {
			t.Fatal(list.output())
		}
		committed += saved.Committed
	}
	return committed
}

// TestShortRuns kills each run of an upload after five seconds, over a link of 10 MiB/s. Each of them must commit
// something.
func TestShortRuns(t *testing.T) {
	t.Parallel()
	if *riskRuns == 0 {
		t.Skip("takes minutes, because the link is slow: see make risk")
	}
	for _, way := range []string{"multipart", "compose"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			e := startEmulator(t, "--total-rate", "10MiB")
			dir := t.TempDir()
			path, state := filepath.Join(dir, "source"), filepath.Join(dir, "state")
			source(t, path, 256<<20, rand.Uint64())
			var all []int64
			for last := int64(0); ; {
				c := run(t, environment(), "cp", "--state-dir", state, "--endpoint", e.url, "--parallel-by", way, path, "gs://demo/x")
				select {
				case <-c.Done():
				case <-time.After(5 * time.Second):
					c.Kill()
				}
				if c.Wait() == 0 {
					break
				}
				committed := e.committed(t, state)
				if all = append(all, committed>>20); committed <= last {
					t.Fatalf("a run committed nothing; after each run, %d MiB were committed", all)
				}
				last = committed
			}
			t.Logf("after each run, %d MiB were committed", all)
		})
	}
}
