//go:build linux

package fire_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gcsup/internal/require"
)

// TestPartialCopies starts two workers with incomplete copies of the tree, and then one that has all files. The first two
// have missed files more often than is allowed, together and each alone. No file becomes a dead letter.
func TestPartialCopies(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "")
	f.cluster = startCluster(t, 1, nil)
	for i := range 8 {
		f.write(fmt.Sprintf("large/%d", i), 2<<20, uint64(i))
	}
	for i := range 60 {
		f.write(fmt.Sprintf("small/%02d", i), 1000, uint64(i))
	}
	f.submit()
	f.addWorkers(3, func() int { return 0 }, "--max-failures", "2", "--missing-for", "30s")
	for i, s := range f.slots[:2] {
		s.view = filepath.Join(f.dir, fmt.Sprintf("machine-%d", s.number))
		if out, err := exec.Command("cp", "-a", f.shared(), s.view).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		for _, name := range []string{"large/3", "small/07", fmt.Sprintf("large/%d", i)} {
			require.NoError(t, os.Remove(filepath.Join(s.view, "tree", name)))
		}
		f.begin(s)
	}
	if !poll(200*time.Millisecond, time.Minute, func() bool {
		for _, s := range f.slots[:2] {
			if strings.Count(s.worker.Stderr(), "task failed") < 3 {
				return false
			}
		}
		return true
	}) {
		f.logs()
		t.Fatal("the workers have not missed the files")
	}
	f.begin(f.slots[2])
	if out, err := result(f.command("status", "--wait", "--failed")); err != nil || out != "" || !f.uploaded() {
		f.logs()
		t.Errorf("not all files are uploaded: %v %s", err, out)
	}
	for _, s := range f.slots {
		f.end(s)
	}
}
