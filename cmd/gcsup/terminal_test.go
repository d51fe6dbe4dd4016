//go:build unix

package main

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/creack/pty"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/cli/readable"
	"gcsup/internal/cli/screen/screentest"
	"gcsup/internal/require"
)

// TestProgramOnATerminal runs the program on a pseudo-terminal of 80 columns, and
// checks all its frames: one layout, the names, the number of files, a percentage
// that never decreases, and at the end nothing but messages.
func TestProgramOnATerminal(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes three seconds")
	}
	server := fakegcs.NewServer(t, &fakegcs.Options{CreateBuckets: true, Faults: []faults.Fault{{
		Match: faults.Match{Op: faults.OpPut}, Skip: 2, Times: 1, Do: faults.Action{Effect: faults.EffectStatus, Status: 503},
	}}})
	dir := t.TempDir()
	const deep = "a-directory-with-a-long-name/another-one/"
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "src", deep), 0o700))
	for i, name := range []string{"small.txt", deep + "disk.img"} {
		require.NoError(t, writeRandom(filepath.Join(dir, "src", name), int64(1+i*9)<<20, uint64(i)))
	}
	self, err := os.Executable()
	require.NoError(t, err)
	program := filepath.Join(dir, "gcsup") // testscript runs main under this name
	require.NoError(t, os.Symlink(self, program))
	cmd := exec.Command(program, "cp", "-r", "--chunk-size=1MiB", "--limit-rate=5MiB", "src", "gs://demo/x")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "TERM=xterm", "HOME="+dir, "GCSUP_STATE_DIR="+filepath.Join(dir, "state"), "STORAGE_EMULATOR_HOST="+server.URL)
	master, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: 80, Rows: 24})
	require.NoError(t, err)
	defer master.Close()
	out, err := io.ReadAll(master)
	if err != nil && !errors.Is(err, syscall.EIO) { // EIO: the program ended
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	const bar = 25 // as in internal/cli/screen/testdata/frames/80.txt
	s := screentest.New(80, true)
	row := regexp.MustCompile(`^(…/\S*|small\.txt) +\[[=-]* *\] +(\d+)%`)
	frames, last, waited, counted := 0, 0, false, false
	for _, part := range strings.SplitAfter(string(out), "\x1b[?7h") { // the end of a frame
		require.NoError(t, s.Write(part))
		for _, l := range s.Lines() {
			counted = counted || strings.HasPrefix(l, "file 1 of 2 ")
			m := row.FindStringSubmatch(l)
			if m == nil {
				continue
			}
			frames++
			if at := strings.Index(l, "["); readable.Width(l[:at]) != bar {
				t.Errorf("the bar of %q begins at %d", l, at)
			}
			if !strings.HasPrefix(m[1], "…/") {
				continue
			}
			if !strings.HasSuffix(m[1], "/disk.img") {
				t.Errorf("the base name is not visible: %q", l)
			}
			n, _ := strconv.Atoi(m[2])
			if n < last {
				t.Errorf("%d%% after %d%%", n, last)
			}
			last = n
			waited = waited || strings.Contains(l, "retry 1 in ") && strings.HasSuffix(l, ": 503")
		}
	}
	if frames < 5 || !waited || !counted {
		t.Errorf("%d frames, a wait with its cause: %v, the number of files: %v\n%s", frames, waited, counted, out)
	}
	end := strings.Join(s.Lines(), "\n")
	if strings.Contains(end, "[") || !strings.Contains(end, "gcsup: 2 files: 2 uploaded (11 MiB), 1 retry in ") || strings.Contains(end, "gs://demo/x/src/small.txt#") {
		t.Errorf("at the end:\n%s", end)
	}
}
