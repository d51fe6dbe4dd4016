//go:build linux

package fire_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"gcsup/internal/require"
	"gcsup/internal/testprocess"
)

// TestReadme runs the first two commands of README.md: three workers finish a tree although one of
// them is killed.
func TestReadme(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	blocks := regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(readme), 2)
	if len(blocks) != 2 || strings.Count(blocks[0][1], "\n") != 1 || strings.Count(blocks[1][1], "\n") != 1 {
		t.Fatalf("README.md does not begin with two commands: %q", blocks)
	}
	f := &fleet{t: &reporter{T: t}, dir: t.TempDir(), files: map[string][]byte{}}
	// The tree is in ~/photos.
	home := f.tree()
	for i := range 4 {
		f.write(fmt.Sprintf("photos/large-%d", i), 7<<20+i, uint64(i))
	}
	for i := range 30 {
		f.write(fmt.Sprintf("photos/small/%d", i), 1000, uint64(i))
	}
	env := []string{"HOME=" + home}
	for _, name := range []string{"GOCACHE", "GOMODCACHE", "GOPATH"} {
		value, err := exec.Command("go", "env", name).Output()
		require.NoError(t, err)
		env = append(env, name+"="+strings.TrimSpace(string(value)))
	}

	up := shell(t, env, blocks[0][1])
	up.Await("3 workers run")
	second := shell(t, env, blocks[1][1])
	if code := second.WaitFor(2 * time.Minute); code != 0 {
		t.Errorf("the second command ended with %d", code)
	}
	if !strings.Contains(up.Stderr(), "ended with -1, and is started again") {
		t.Error("no worker was killed")
	}
	m := regexp.MustCompile(`the emulator is at (http://\S+),`).FindStringSubmatch(up.Stderr())
	if m == nil {
		t.Fatalf("the first command names no emulator: %s", up.Stderr())
	}
	e := &emulator{t: t, addr: strings.TrimPrefix(m[1], "http://")}
	for name, data := range f.files {
		if got, err := e.object("my-bucket", name); err != nil || !bytes.Equal(got, data) {
			t.Errorf("%s is wrong (%v)", name, err)
		}
	}
	// Ctrl-C ends everything.
	_ = syscall.Kill(-up.PID(), syscall.SIGINT)
	up.WaitFor(time.Minute)
	if t.Failed() {
		t.Logf("first:\n%s\nsecond:\n%s%s", up.Stderr(), second.Stdout(), second.Stderr())
	}
}

// shell runs a shell command in the directory of README.md, in its own process group, as a terminal
// does. The group is killed at the end of the test.
func shell(t *testing.T, env []string, line string) *testprocess.Process {
	t.Helper()
	return startIn(t, "../..", nil, env, "bash", "-c", line)
}
