//go:build linux

package fire_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"gcsup/internal/require"
	"gcsup/internal/testprocess"
)

var (
	submitFiles = flag.Int("fire-files", 20_000, "how many files TestMillion submits")
	submitSize  = flag.Int64("fire-file-size", 1000, "their size in bytes; above 1 MiB each has a message of its own")
)

// TestMillion submits many files, and measures the memory of the command and of the server. That of
// the command must not depend on the number of files.
func TestMillion(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e := startEmulator(t, "")
	n := newCluster(t, 1).nodes[0]
	conf := fmt.Sprintf("server_name: n1\nlisten: %q\njetstream { store_dir: %q, max_memory_store: 64MB, max_file_store: 8GB }\n", n.addr(), n.dir)
	require.NoError(t, os.WriteFile(n.dir+".conf", []byte(conf), 0o600))
	server := start(t, nil, natsServer, "-c", n.dir+".conf")
	// The files are hard links, because a million separate files fill a disk. A file can have
	// 65,000 links.
	const perDirectory = 20_000
	var original string
	for i := range *submitFiles {
		d := filepath.Join(dir, "tree", strconv.Itoa(i/perDirectory))
		path := filepath.Join(d, fmt.Sprintf("%07d", i))
		var err error
		if i%perDirectory > 0 {
			err = os.Link(original, path)
		} else if err = os.MkdirAll(d, 0o700); err == nil {
			original = path
			if err = os.WriteFile(path, nil, 0o600); err == nil {
				err = os.Truncate(path, *submitSize)
			}
		}
		require.NoError(t, err)
	}
	began := time.Now()
	submit := start(t, writeKeys(t, dir), gcsupFleet, "submit", "-r", filepath.Join(dir, "tree"), "gs://data/", "--nats", "nats://"+n.addr(), "--endpoint", e.url())
	var peak int64
	for submit.Alive() {
		peak = max(peak, memory(submit, "VmHWM"))
		time.Sleep(20 * time.Millisecond)
	}
	if want := fmt.Sprintf("submitted %d files", *submitFiles); submit.Wait() != 0 || !strings.Contains(submit.Stdout(), want) {
		t.Fatalf("submit ended with %d: %s%s", submit.Wait(), submit.Stdout(), submit.Stderr())
	}
	t.Logf("%d files in %v; peak memory: submit %d MiB, server %d MiB", *submitFiles, time.Since(began).Round(time.Millisecond), peak>>20, memory(server, "VmHWM")>>20)
	if limit := int64(256 << 20); peak > limit {
		t.Errorf("submit needed %d MiB, want at most %d", peak>>20, limit>>20)
	}
}

// memory returns a value of the status of a process in bytes, 0 if it has ended.
func memory(p *testprocess.Process, value string) int64 {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID()))
	for line := range strings.Lines(string(data)) {
		var kib int64
		if n, _ := fmt.Sscanf(line, value+": %d kB", &kib); n == 1 {
			return kib << 10
		}
	}
	return 0
}
