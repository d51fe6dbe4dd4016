//go:build unix

package screen

import (
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"gcsup/internal/cli/readable"
	"gcsup/internal/cli/result"
	"gcsup/internal/cli/screen/screentest"
	"gcsup/internal/require"
	"gcsup/session"
	"gcsup/upload"
)

var update = flag.Bool("update", false, "rewrite testdata/frames")

// terminal is a console on a real pseudo-terminal, and the screen that a person
// sees.
type terminal struct {
	t       *testing.T
	console *Console
	screen  *screentest.Screen
	master  *os.File
	out     chan string
}

func newTerminal(t *testing.T, columns, height int, reflows bool) *terminal {
	t.Helper()
	t.Setenv("TERM", "xterm-256color")
	master, tty, err := pty.Open()
	require.NoError(t, err)
	term := &terminal{t: t, console: NewConsole(tty, false), screen: screentest.New(columns, reflows), master: master, out: make(chan string)}
	go func() {
		buffer := make([]byte, 1<<16)
		for {
			n, err := master.Read(buffer)
			if n > 0 {
				term.out <- string(buffer[:n])
			}
			if err != nil {
				close(term.out)
				return
			}
		}
	}()
	t.Cleanup(func() {
		_ = tty.Close()
		_ = master.Close()
	})
	term.resize(columns, height)
	return term
}

func (term *terminal) resize(columns, height int) {
	term.t.Helper()
	require.NoError(term.t, pty.Setsize(term.master, &pty.Winsize{Cols: uint16(columns), Rows: uint16(height)}))
	if columns != term.screen.Columns() {
		term.screen.Resize(columns)
	}
}

// written marks the end of the output of a call, so that the test can wait for it.
const written = "\x1b[9999m"

// do calls f and passes its output to the screen.
func (term *terminal) do(f func()) {
	term.t.Helper()
	go func() {
		f()
		_, _ = term.console.w.(*os.File).WriteString(written)
	}()
	var text strings.Builder
	for !strings.HasSuffix(text.String(), written) {
		part, ok := <-term.out
		if !ok {
			term.t.Fatal("the pseudo-terminal is closed")
		}
		text.WriteString(part)
	}
	if err := term.screen.Write(text.String()); err != nil {
		term.t.Fatalf("%v in %q", err, text.String())
	}
}

// show draws a frame of d.
func (term *terminal) show(d *Display, now time.Time) {
	term.t.Helper()
	columns, height, ok := term.console.size()
	if !ok {
		term.t.Fatal("the pseudo-terminal shows no frames")
	}
	term.do(func() { term.console.show(d.frame(now, columns, height)) })
}

// above checks that the newest frame is at the end of the screen, and returns the lines above it.
func (term *terminal) above(what string, d *Display, now time.Time, columns int) []string {
	term.t.Helper()
	lines := term.screen.Lines()
	var want []string
	for _, l := range d.frame(now, columns, 24) {
		want = append(want, l.text)
	}
	if len(lines) < len(want) || !slices.Equal(lines[len(lines)-len(want):], want) {
		term.t.Fatalf("%s, %d columns:\n%s\nwant at the end\n%s", what, columns, strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
	return lines[:len(lines)-len(want)]
}

// story plays the events of a run, and calls frame with a name for each interesting
// moment.
func story(frame func(name string, d *Display, now time.Time)) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	d := NewDisplay(Run{Work: Uploading, Files: -1})
	event := func(id int, name string, kind upload.EventKind, size, sent, committed int64) {
		d.Note(id, name, upload.Event{Kind: kind, Size: size * mib, Sent: sent * mib, Arrived: sent * mib, Committed: committed * mib}, now)
	}
	const disk, photo = "/var/lib/images/production/disk-image-of-november-2026.img", "фото/2026/写真-コレクション.tif"
	event(1, disk, upload.Started, 1000, 0, 0)
	event(2, photo, upload.Resumed, 400, 100, 100)
	d.Note(3, "db.sql", upload.Event{Kind: upload.Verifying, Size: 64 * mib, Compared: 1 * mib, ToCompare: 40 * mib}, now)
	frame("started", d, now)
	now = now.Add(4 * time.Second)
	event(1, disk, upload.Progress, 1000, 400, 200)
	event(2, photo, upload.Progress, 400, 140, 120)
	d.Note(3, "db.sql", upload.Event{Kind: upload.Verifying, Size: 64 * mib, Compared: 21 * mib, ToCompare: 40 * mib}, now)
	frame("sending", d, now)
	d.SetTotals(1234, 20_000*mib)
	now = now.Add(2 * time.Second)
	event(1, disk, upload.Progress, 1000, 500, 200)
	d.Note(2, photo, upload.Event{Kind: upload.Waiting, Size: 400 * mib, Sent: 150 * mib, Arrived: 150 * mib, Committed: 120 * mib, Delay: 8 * time.Second, Retry: 3,
		Err: &session.Error{Err: &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}}}, now)
	d.Note(3, "db.sql", upload.Event{Kind: upload.Settling, Size: 64 * mib}, now)
	frame("waiting, and counted", d, now)
	now = now.Add(9 * time.Second)
	event(1, disk, upload.Progress, 1000, 950, 200)
	event(2, photo, upload.Progress, 400, 120, 120)
	d.End(3, result.Failed, &upload.Result{Size: 64 * mib}, now)
	for i := range 10 {
		event(4+i, fmt.Sprintf("logs/2026-11-%02d/access.log", i+1), upload.Started, 1, 0, 0)
	}
	frame("sent again, one failed, more files than lines", d, now)
	now = now.Add(time.Second)
	event(1, disk, upload.Restarted, 1000, 0, 0)
	for i := range 9 {
		d.End(4+i, result.OK, &upload.Result{Size: mib}, now)
	}
	d.Note(13, "logs/2026-11-10/access.log", upload.Event{Kind: upload.Waiting, Size: mib, Delay: 30 * time.Second, Retry: 2, Cause: "503; another upload is probing", Blocked: true, Err: unavailable}, now)
	frame("the service lost a session", d, now)
	now = now.Add(12 * time.Second)
	event(1, disk, upload.Progress, 1000, 100, 0)
	frame("and sends again", d, now)
}

// TestFrames compares the screens of terminals of several widths with the files in
// testdata/frames. -update rewrites them.
func TestFrames(t *testing.T) {
	for _, columns := range []int{40, 80, 200} {
		t.Run(fmt.Sprint(columns), func(t *testing.T) {
			term := newTerminal(t, columns, 24, true)
			var got strings.Builder
			story(func(name string, d *Display, now time.Time) {
				term.show(d, now)
				lines := term.screen.Lines()
				for _, l := range lines {
					if readable.Width(l) >= columns {
						t.Errorf("%s: a line fills the terminal: %q", name, l)
					}
				}
				fmt.Fprintf(&got, "-- %s --\n%s\n", name, strings.Join(lines, "\n"))
			})
			path := filepath.Join("testdata", "frames", fmt.Sprintf("%d.txt", columns))
			if *update {
				require.NoError(t, os.WriteFile(path, []byte(got.String()), 0o644))
			}
			want, err := os.ReadFile(path)
			require.NoError(t, err)
			if got.String() != string(want) {
				t.Errorf("got\n%s\nwant\n%s", got.String(), want)
			}
		})
	}
}

// TestFramesHaveOneLayout checks for every width that a column begins at the same
// place in all frames, that no line is too long, and that a frame of a low terminal
// fits.
func TestFramesHaveOneLayout(t *testing.T) {
	for columns := 1; columns <= 250; columns++ {
		l := layoutFor(columns)
		for _, height := range []int{5, 8, 24} {
			story(func(name string, d *Display, now time.Time) {
				frame := d.frame(now, columns, height)
				if columns >= 40 && len(frame) > height {
					t.Fatalf("%d columns, %s: %d lines on %d", columns, name, len(frame), height)
				}
				for i, line := range frame {
					if readable.Width(line.text) > max(columns-1, 1) {
						t.Fatalf("%d columns, %s: %q is too long", columns, name, line.text)
					}
					if l.bar == 0 || i >= len(d.rows) {
						continue
					}
					if at := readable.Width(line.text[:strings.LastIndex(line.text, "[")]); at != l.name+1 {
						t.Fatalf("%d columns, %s: the bar of %q begins at %d, want %d", columns, name, line.text, at, l.name+1)
					}
				}
			})
		}
	}
}

// TestResizeLeavesNothing changes the width of a terminal between frames, and checks
// that the screen has only the newest frame and the messages above it.
func TestResizeLeavesNothing(t *testing.T) {
	for _, reflows := range []bool{true, false} {
		t.Run(fmt.Sprintf("reflows=%v", reflows), func(t *testing.T) {
			term := newTerminal(t, 120, 24, reflows)
			term.do(func() { term.console.Message("first") })
			widths := []int{80, 33, 200, 79, 41, 160, 12, 80}
			story(func(name string, d *Display, now time.Time) {
				for i, columns := range widths {
					term.show(d, now)
					term.resize(columns, 24)
					if i == 3 {
						term.do(func() { term.console.Message("m") })
						term.show(d, now)
					}
					term.show(d, now)
					above := term.above(name, d, now, columns)
					for j, l := range above {
						if l != "gcsup: m" && !(j == 0 && strings.HasPrefix("gcsup: first", l)) && !(j == 1 && columns == 12) {
							t.Fatalf("%s, %d columns: left behind: %q", name, columns, above)
						}
					}
				}
			})
			term.resize(33, 24) // breaks all lines, also the last one
			term.do(func() { term.console.show(nil) })
			lines := term.screen.Lines()
			for _, l := range lines {
				if l != "gcsup: m" && l != "gcsup: first" && l != "" {
					t.Fatalf("left at the end: %q", lines)
				}
			}
		})
	}
}

// TestDragLeavesNothing draws frames while a window is dragged: the terminal has another width than
// the program knows, as tmux reports a new one up to 250 ms late.
func TestDragLeavesNothing(t *testing.T) {
	for _, reflows := range []bool{true, false} {
		t.Run(fmt.Sprintf("reflows=%v", reflows), func(t *testing.T) {
			term := newTerminal(t, 120, 24, reflows)
			term.do(func() { term.console.Message("first") })
			story(func(name string, d *Display, now time.Time) {
				for i, columns := range []int{115, 100, 84, 60, 45, 33, 52, 79, 81, 104, 120, 160, 200, 150, 80} {
					term.screen.Resize(columns)
					if i%3 == 2 {
						term.do(func() { term.console.Message("m") })
					}
					term.show(d, now)
					if i%4 == 3 {
						term.resize(columns, 24)
						term.show(d, now)
					}
				}
				term.resize(120, 24)
				term.show(d, now)
				above := term.above(name, d, now, 120)
				for j, l := range above {
					if l != "gcsup: m" && (j > 0 || l != "gcsup: first") {
						t.Fatalf("%s: left behind: %q", name, above)
					}
				}
			})
		})
	}
}

// TestPercentageNeverGoesBack checks that a percentage decreases only in a frame that
// reports that the service lost bytes.
func TestPercentageNeverGoesBack(t *testing.T) {
	now := time.Unix(0, 0)
	tr := &activeFile{name: "a", size: -1}
	last := 0
	for i, e := range []upload.Event{
		{Kind: upload.Started}, {Sent: 60, Arrived: 60, Kind: upload.Progress}, {Sent: 80, Arrived: 80, Committed: 20, Kind: upload.Progress},
		{Sent: 80, Arrived: 80, Committed: 20, Kind: upload.Waiting, Delay: time.Second, Cause: "503", Err: unavailable}, {Sent: 20, Arrived: 20, Committed: 20, Kind: upload.Progress},
		{Sent: 40, Arrived: 40, Committed: 20, Kind: upload.Progress}, {Sent: 90, Arrived: 90, Committed: 40, Kind: upload.Progress},
		{Sent: 0, Arrived: 0, Committed: 0, Kind: upload.Restarted, Cause: "410"}, {Sent: 10, Arrived: 10, Kind: upload.Progress}, {Sent: 100, Arrived: 100, Committed: 100, Kind: upload.Progress},
	} {
		e.Size = 100
		tr.note(e, now)
		n := 0
		_, err := fmt.Sscanf(percentText(tr.highest, tr.size), "%d%%", &n)
		require.NoError(t, err)
		state, _ := tr.state(now, false)
		if n < last && state != "the service lost 90 B" {
			t.Errorf("event %d: %d%% after %d%%, and the state is %q", i, n, last, state)
		}
		last = n
		now = now.Add(time.Second)
	}
}

// TestEstimateGoesBack checks that a smaller estimate of how much of a compressed file is committed is no loss.
func TestEstimateGoesBack(t *testing.T) {
	now, tr := time.Unix(0, 0), &activeFile{name: "a", size: -1}
	for _, read := range []int64{60, 50, 70} {
		at := upload.SourceOffsets{Size: 100, Sent: read, Arrived: read, Committed: read}
		tr.note(upload.Event{Kind: upload.Progress, Size: -1, Sent: 30, Arrived: 30, Committed: 30, Source: &at}, now)
		if state, _ := tr.state(now, false); tr.lost != 0 || tr.highest < 60 {
			t.Errorf("%d bytes of the file: %q, the highest offset is %d", read, state, tr.highest)
		}
	}
}

// TestColors checks that waits have a color, and that NO_COLOR removes it.
func TestColors(t *testing.T) {
	wait := []liveLine{{"a.bin  retry", yellow}}
	for _, c := range []struct {
		value string
		want  bool
	}{{"", true}, {"1", false}} {
		t.Setenv("NO_COLOR", c.value)
		r := newLiveRegion()
		if text := r.draw(wait, 80); strings.Contains(text, "\x1b[33m") != c.want {
			t.Errorf("NO_COLOR=%s: %q", c.value, text)
		}
	}
}

// TestDumbTerminal checks that a dumb terminal gets lines, not frames.
func TestDumbTerminal(t *testing.T) {
	term := newTerminal(t, 80, 24, true)
	if _, _, ok := term.console.size(); !ok {
		t.Error("a terminal shows no frames")
	}
	t.Setenv("TERM", "dumb")
	if _, _, ok := term.console.size(); ok {
		t.Error("a dumb terminal shows frames")
	}
}

// BenchmarkDisplay measures a small file: its events, and its part of 7 frames per
// second at 5,000 files per second.
func BenchmarkDisplay(b *testing.B) {
	d := NewDisplay(Run{Work: Uploading, Files: -1})
	now := time.Unix(0, 0)
	for i := range b.N {
		now = now.Add(200 * time.Microsecond)
		d.Note(i, "logs/2026-11-22/access.log", upload.Event{Kind: upload.Started, Size: 4096}, now)
		if i >= 32 {
			d.End(i-32, result.OK, &upload.Result{Size: 4096}, now)
		}
		if i%715 == 0 {
			d.frame(now, 80, 24)
		}
	}
}
