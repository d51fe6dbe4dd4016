//go:build linux

package fire_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"

	"gcsup/fleet/internal/smalldisk"
	"gcsup/internal/require"
)

// disk is a small file system in memory, which can be full. It is in a mount namespace of its own:
// only processes that are started inside see it. The methods of a nil disk are those of the disk of
// this process.
type disk struct {
	t      *testing.T
	dir    string // where it is mounted, inside
	holder *exec.Cmd
	empty  func() // removes what fill wrote
}

// diskSize is the size of a disk. A fleet stores less.
const diskSize = "64m"

// newDisk makes a disk that is mounted on a directory. It returns nil if this system does not allow
// that.
func newDisk(t *testing.T, dir string) *disk {
	t.Helper()
	require.NoError(t, os.MkdirAll(dir, 0o700))
	// The holder ends when its standard input is closed, even if the test is killed.
	holder := exec.Command("unshare", "--user", "--map-root-user", "--mount", "sh", "-c",
		`mount -t tmpfs -o size="$1" tmpfs "$2" && echo mounted && cat`, "sh", diskSize, dir)
	in, err := holder.StdinPipe()
	require.NoError(t, err)
	out, err := holder.StdoutPipe()
	if err == nil {
		err = holder.Start()
	}
	if err == nil {
		_, err = bufio.NewReader(out).ReadString('\n')
	}
	end := sync.OnceFunc(func() {
		_ = in.Close()
		_ = holder.Wait()
	})
	if err != nil {
		end()
		t.Logf("NOT TESTED: a full disk, because a file system cannot be mounted in a namespace (%v)", err)
		return nil
	}
	t.Cleanup(end)
	return &disk{t: t, dir: dir, holder: holder, empty: func() {}}
}

// path returns the path outside of a path inside.
func (d *disk) path(inside string) string {
	if d == nil {
		return inside
	}
	return fmt.Sprintf("/proc/%d/root%s", d.holder.Process.Pid, inside)
}

// inside returns the command line that runs a program inside, in a working directory.
func (d *disk) inside(directory, program string, args ...string) (string, []string) {
	if d == nil {
		return program, args
	}
	return "nsenter", append([]string{"--user", "--mount", "--preserve-credentials", "--wdns=" + directory,
		fmt.Sprintf("--target=%d", d.holder.Process.Pid), program}, args...)
}

// fill fills the disk.
func (d *disk) fill() {
	d.t.Helper()
	d.empty = smalldisk.Fill(d.t, d.path(d.dir))
}

// free removes what fill wrote.
func (d *disk) free() {
	d.t.Helper()
	d.empty()
}
