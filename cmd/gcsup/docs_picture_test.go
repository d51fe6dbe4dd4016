//go:build linux

package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"gcsup/fakegcs"
	"gcsup/internal/cli/screen/screentest"
	"gcsup/internal/require"
)

// The pictures in README.md, and their colors.
var pictures = map[string]screentest.Theme{
	"../../docs/start/resume-dark.svg":  {Background: "#0d1117", Border: "#3d444d", Text: "#d1d7e0", Title: "#9198a1", Colors: map[string]string{"32": "#3fb950"}},
	"../../docs/start/resume-light.svg": {Background: "#ffffff", Border: "#d1d9e0", Text: "#1f2328", Title: "#59636e", Colors: map[string]string{"32": "#1a7f37"}},
}

const pictureTitle = "an upload is killed, and the same command resumes it"

// TestPicture uploads a file in a terminal, kills the process in the middle, and uploads the file
// again. It compares what the terminal shows with the pictures in README.md:
//
//	go test ./cmd/gcsup -run TestPicture -update
func TestPicture(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes five seconds")
	}
	scene := newScene(t)
	scene.play("gcsup cp --limit-rate 24MiB vm.img gs://my-bucket/")

	var played [][]string
	for _, f := range scene.frames {
		played = append(played, screentest.Text(f.Lines))
	}
	for page, theme := range pictures {
		if *update {
			require.NoError(t, os.WriteFile(page, screentest.SVG(scene.frames, sceneColumns, pictureTitle, theme), 0o644))
		}
		picture, err := os.ReadFile(page)
		require.NoError(t, err)
		if have, want := normalized(played), normalized(screentest.SVGLines(picture)); !slices.Equal(have, want) {
			t.Errorf("the terminal shows\n%s\n%s has\n%s", strings.Join(have, "\n--\n"), page, strings.Join(want, "\n--\n"))
		}
	}
	if first, last := played[0], played[len(played)-1]; len(first) != 1 || len(last) < 5 {
		t.Errorf("the first frame is %q, the last one %q", first, last)
	}
}

// normalized returns the frames without what differs in each run, one for all that then are equal.
func normalized(frames [][]string) []string {
	var texts []string
	for _, lines := range frames {
		text := strings.Join(lines, "\n")
		if strings.Contains(text, " comparing ") {
			continue // shown only if the machine reads what is stored more slowly than the display changes
		}
		text = regexp.MustCompile(`\[[=-]* *\] +\d+%`).ReplaceAllString(text, "[BAR]")
		text = regexp.MustCompile(`(?m)^[\d.]+ \S+ sent, .*`).ReplaceAllString(text, "[AMOUNT]") // with the rate, or what the upload waits for
		texts = append(texts, withoutValues(text))
	}
	return slices.Compact(texts)
}

// withoutValues returns messages without the values that differ in each run.
func withoutValues(text string) string {
	for _, r := range []struct{ value, name string }{
		{`saved upload [0-9a-f]+`, `saved upload ID`},
		{`crc32c \S+`, `crc32c SUM`},
		{`in [\d.]+m?s`, `in TIME`},
		{`\d+(\.\d+)? [KMG]?i?B\b`, `SIZE`},
		{`#\d+`, `#GENERATION`},
	} {
		text = regexp.MustCompile(r.value).ReplaceAllString(text, r.name)
	}
	return regexp.MustCompile(`[\d.]+ of SIZE`).ReplaceAllString(text, "SIZE of SIZE")
}

const sceneColumns, sceneRows = 110, 24

// scene is a shell in a terminal, and what the terminal has shown.
type scene struct {
	t      *testing.T
	master *os.File
	screen *screentest.Screen
	output bytes.Buffer // what the screen has not shown yet
	frames []screentest.Frame
}

func newScene(t *testing.T) *scene {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "vm.img"), nil, 0o600))
	require.NoError(t, os.Truncate(filepath.Join(dir, "vm.img"), 96<<20))
	srv := fakegcs.NewServer(t, &fakegcs.Options{CreateBuckets: true, Discard: true})
	shell := exec.Command("bash", "--norc", "--noprofile", "--noediting", "-i")
	shell.Dir = dir
	// The prompt erases what the killed process left below it, as that of zsh does.
	shell.Env = []string{"PS1=\x1b[J\x1b[32m$\x1b[m ", "TERM=xterm", "LC_ALL=C.UTF-8", "HOME=" + dir, "PATH=" + os.Getenv("PATH"),
		"STORAGE_EMULATOR_HOST=" + srv.URL, "GORACE=atexit_sleep_ms=20 exitcode=166"}
	master, err := pty.StartWithSize(shell, &pty.Winsize{Cols: sceneColumns, Rows: sceneRows})
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = master.Close() // ends the shell
		_ = shell.Wait()
	})
	return &scene{t: t, master: master, screen: screentest.New(sceneColumns, false)}
}

var half = regexp.MustCompile(`\] +[5-9]\d%`)

// play types the command twice. The first process is killed after half of the file.
func (s *scene) play(command string) {
	const frame = "\x1b[?7h" // the end of a frame of gcsup
	s.until("$\x1b[m ")
	s.command(command)
	for {
		s.until(frame)
		s.keep(150 * time.Millisecond)
		if half.MatchString(strings.Join(s.screen.Lines(), "\n")) {
			break
		}
	}
	s.kill()
	s.until("$\x1b[m ")
	s.keep(1500 * time.Millisecond)
	s.command(command)
	for s.until(frame, "$\x1b[m ") == frame {
		if !strings.Contains(strings.Join(s.screen.Lines(), "\n"), "crc32c") { // a frame may be below the result for a moment
			s.keep(150 * time.Millisecond)
		}
	}
	s.keep(7 * time.Second)
}

// kill kills the processes in the foreground of the terminal.
func (s *scene) kill() {
	conn, err := s.master.SyscallConn()
	require.NoError(s.t, err)
	var group int
	var ioctlErr error
	err = conn.Control(func(fd uintptr) { group, ioctlErr = unix.IoctlGetInt(int(fd), unix.TIOCGPGRP) })
	require.NoError(s.t, errors.Join(err, ioctlErr))
	require.NoError(s.t, syscall.Kill(-group, syscall.SIGKILL))
}

// command types a command.
func (s *scene) command(command string) {
	if _, err := s.master.WriteString(command + "\n"); err != nil {
		s.t.Fatal(err)
	}
	s.until(command)
	s.keep(time.Second)
}

// until shows the output up to the first of these texts, which it returns.
func (s *scene) until(texts ...string) string {
	s.t.Helper()
	require.NoError(s.t, s.master.SetReadDeadline(time.Now().Add(time.Minute)))
	for buffer := make([]byte, 1<<16); ; {
		end, found := -1, ""
		for _, text := range texts {
			if i := bytes.Index(s.output.Bytes(), []byte(text)); i >= 0 && (found == "" || i+len(text) < end) {
				end, found = i+len(text), text
			}
		}
		if found != "" {
			require.NoError(s.t, s.screen.Write(string(s.output.Next(end))))
			return found
		}
		n, err := s.master.Read(buffer)
		if err != nil {
			s.t.Fatalf("%v while waiting for %q; the output is %q, the screen\n%s", err, texts, s.output.String(), strings.Join(s.screen.Lines(), "\n"))
		}
		s.output.Write(buffer[:n])
	}
}

// keep records what the terminal shows.
func (s *scene) keep(hold time.Duration) {
	s.frames = append(s.frames, screentest.Frame{Lines: s.screen.Runs(), Hold: hold})
}
