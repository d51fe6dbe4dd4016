//go:build linux

package fire_test

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestHungRead delays all reads of some files of a worker, as by a server of NFS that has died. The worker gives up
// these tasks, and not the others, and another worker uploads the files.
func TestHungRead(t *testing.T) {
	t.Parallel()
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("strace is not installed")
	}
	f := newFleet(t, "")
	f.cluster = startCluster(t, 1, nil)
	f.write("large", 3<<20, 1)
	f.write("small/a", 1000, 2)
	f.write("small/hung", 1000, 3)
	f.write("well", 3<<20, 4)
	f.submit()
	f.addWorkers(2, func() int { return 0 })
	first, second := f.slots[0], f.slots[1]
	first.wrap = []string{strace, "-D", "-f", "-qq", "-o", filepath.Join(f.dir, "trace")}
	for _, name := range []string{"large", "small/hung"} {
		first.wrap = append(first.wrap, "-P", filepath.Join(f.tree(), name))
	}
	first.wrap = append(first.wrap, "-e", "trace=pread64,read", "-e", "inject=pread64,read:delay_enter=3600s")
	f.begin(first)
	if !poll(200*time.Millisecond, time.Minute, func() bool { return strings.Count(first.worker.Stderr(), "task begins") >= 3 }) {
		t.Fatalf("the worker has not taken the tasks: %s", first.worker.Stderr())
	}
	began := time.Now()
	f.begin(second)
	if !poll(200*time.Millisecond, time.Minute, f.uploaded) {
		f.logs()
		t.Fatal("the files are not uploaded")
	}
	t.Logf("uploaded after %v, with an ack wait of %v", time.Since(began).Round(time.Millisecond), ackWait)
	log := first.worker.Stderr()
	for _, name := range []string{"large", "small/hung"} {
		if !strings.Contains(log, "does not return, and the task goes to another worker") || !strings.Contains(log, "path="+filepath.Join(f.mount(), "tree", name)) {
			t.Errorf("the log does not name %s", name)
		}
	}
	if strings.Contains(log, "path="+filepath.Join(f.mount(), "tree", "well")) {
		t.Error("the log names a file that can be read")
	}
	f.end(second)
	first.kill() // strace would not let it end
	for name, want := range f.files {
		if got, err := f.emulator.object("data", name); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is wrong (%v)", name, err)
		}
	}
	if t.Failed() {
		f.logs()
	}
}
