//go:build unix

package main

import (
	"bytes"
	"os"
	"testing"

	"github.com/creack/pty"

	"gcsup/internal/require"
)

// TestView checks what a run shows on a terminal and elsewhere.
func TestView(t *testing.T) {
	t.Setenv("TERM", "xterm")
	master, tty, err := pty.Open()
	require.NoError(t, err)
	defer master.Close()
	defer tty.Close()
	read, pipe, err := os.Pipe()
	require.NoError(t, err)
	defer read.Close()
	defer pipe.Close()
	var file bytes.Buffer
	toPipe := stdio{out: pipe, err: tty}
	both, toFile, neither, logged := stdio{out: tty, err: tty}, stdio{out: &file, err: tty}, stdio{out: &file, err: &file}, stdio{out: tty, err: &file}
	for _, c := range []struct {
		mode           progressMode
		std            stdio
		quiet, verbose bool
		want           view
	}{
		{progressAuto, both, false, false, view{progressBlock, false}},
		{progressAuto, both, false, true, view{progressLines, true}},
		{progressAuto, both, true, false, view{progressOff, false}},
		{progressAuto, toFile, false, false, view{progressBlock, true}},
		{progressAuto, toPipe, false, false, view{progressLines, true}}, // its reader may write to the terminal
		{progressBlock, toPipe, false, false, view{progressBlock, true}},
		{progressAuto, neither, false, false, view{progressLines, true}},
		{progressAuto, logged, false, false, view{progressLines, true}}, // otherwise the terminal would show nothing
		{progressBlock, both, false, true, view{progressBlock, true}},
		{progressBlock, neither, false, false, view{progressLines, true}},
		{progressLines, both, false, false, view{progressLines, true}},
		{progressLines, both, true, false, view{progressOff, false}},
		{progressOff, both, false, false, view{progressOff, false}},
		{progressOff, both, false, true, view{progressOff, true}},
		{progressOff, neither, false, false, view{progressOff, true}},
	} {
		if got := c.mode.view(c.std, c.quiet, c.verbose); got != c.want {
			t.Errorf("--progress=%s, quiet %v, verbose %v, output on a terminal %v and %v: %+v, want %+v",
				c.mode, c.quiet, c.verbose, c.std.out == tty, c.std.err == tty, got, c.want)
		}
	}
	t.Setenv("TERM", "dumb")
	if got := progressAuto.view(both, false, false); got != (view{progressLines, true}) {
		t.Errorf("on a dumb terminal: %+v", got)
	}
}
