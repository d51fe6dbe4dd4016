//go:build unix

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creack/pty"

	"gcsup/fakegcs"
	"gcsup/internal/require"
)

// TestCommandOnATerminal runs a command that asks for a password at the terminal, beside the display. Before its next
// output, Ctrl-C ends it. After a pipe, a message names this way.
func TestCommandOnATerminal(t *testing.T) {
	t.Parallel()
	server := fakegcs.NewServer(t, &fakegcs.Options{CreateBuckets: true})
	self, err := os.Executable()
	require.NoError(t, err)
	const script = `echo note >&2; stty -echo </dev/tty; printf Password: >/dev/tty; read p </dev/tty; stty echo </dev/tty; echo "$p"`
	const pipe = `echo note | gcsup cp - gs://demo/piped`
	for _, c := range []struct {
		name, object string
		args         []string
		typed        string // if there is a question
		prints       string
		code         int
	}{
		{"answered", "secret\n", []string{"gcsup", "cp", "gs://demo/answered", "--", "sh", "-c", script}, "secret\n", "note\r\n", 0},
		{"stopped", "", []string{"gcsup", "cp", "gs://demo/stopped", "--", "sh", "-c", script}, "\x03", "stopped by signal: interrupt", 75},
		{"piped", "note\n", []string{"sh", "-c", pipe}, "", "cp gs://demo/piped -- COMMAND", 0},
	} {
		dir := t.TempDir()
		program := filepath.Join(dir, "gcsup") // testscript runs main under this name
		require.NoError(t, os.Symlink(self, program))
		cmd := exec.Command(c.args[0], c.args[1:]...)
		if c.args[0] == "gcsup" {
			cmd = exec.Command(program, c.args[1:]...)
		}
		cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "TERM=xterm", "HOME="+dir, "GCSUP_STATE_DIR="+filepath.Join(dir, "state"), "STORAGE_EMULATOR_HOST="+server.URL)
		master, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: 80, Rows: 24})
		require.NoError(t, err)
		defer master.Close()
		var out bytes.Buffer
		buf := make([]byte, 4096)
		for asked := false; ; {
			n, err := master.Read(buf)
			out.Write(buf[:n])
			if !asked && strings.Contains(out.String(), "Password:") {
				asked = true
				if _, err := master.WriteString(c.typed); err != nil {
					t.Fatal(err)
				}
			}
			if err != nil { // the program ended
				break
			}
		}
		_ = cmd.Wait()
		if got := cmd.ProcessState.ExitCode(); got != c.code || !strings.Contains(out.String(), c.prints) || strings.Contains(out.String(), "secret") {
			t.Errorf("%s: exit code %d, want %d\n%q", c.name, got, c.code, out.String())
		}
		if object, err := server.ReadObject("demo", c.name); (err == nil) != (c.object != "") || string(object) != c.object {
			t.Errorf("%s: object %q, %v", c.name, object, err)
		}
	}
}
