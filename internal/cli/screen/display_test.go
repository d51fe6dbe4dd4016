//go:build unix

package screen

import (
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"gcsup/internal/cli/readable"
	"gcsup/internal/cli/result"
	"gcsup/internal/require"
	"gcsup/upload"
)

// TestFrameOfLowTerminal checks that a frame is never higher than the terminal, and
// that the totals have priority.
func TestFrameOfLowTerminal(t *testing.T) {
	for _, columns := range []int{20, 40, 80, 200} {
		for height := 1; height < 6; height++ {
			story(func(name string, d *Display, now time.Time) {
				d.NoteListing("listing bucket", upload.Event{Kind: upload.Waiting, Delay: time.Hour, Cause: "503", Err: unavailable}, now)
				frame := d.frame(now, columns, height)
				if len(frame) > height {
					t.Errorf("%d columns, %d lines, %s: %d lines", columns, height, name, len(frame))
				}
				if height >= 2 && !strings.Contains(frame[max(len(frame)-2, 0)].text+frame[len(frame)-1].text, "file ") {
					t.Errorf("%d columns, %d lines, %s: no totals in %q", columns, height, name, frame)
				}
			})
		}
	}
}

// TestWaitForListing checks that a listing that is retried has a row, which does not
// count as a file and disappears.
func TestWaitForListing(t *testing.T) {
	now := time.Unix(0, 0)
	d := NewDisplay(Run{Work: Uploading, Files: -1})
	d.NoteListing("listing bucket", upload.Event{Kind: upload.Waiting, Size: -1, Delay: 8 * time.Second, Retry: 3, Cause: "503", Err: unavailable}, now)
	frame := d.frame(now, 80, 24)
	if len(frame) != 2 || !strings.HasPrefix(frame[0].text, "listing bucket ") || !strings.Contains(frame[0].text, "retry 3 in 8 s: 503") || frame[1].text != "file 0                            sent 0 B" {
		t.Errorf("got %q", frame)
	}
	if line := d.plainLine(now); !strings.Contains(line, ", listing bucket: retry 3 in 8 s: 503") {
		t.Errorf("the line of a log is %q", line)
	}
	if frame := d.frame(now.Add(time.Minute), 80, 24); len(frame) != 1 {
		t.Errorf("a minute later: %q", frame)
	}
}

// TestHeldFileInALog checks that the line of a log names the lease that a file waits for, and not the cause of its last wait.
func TestHeldFileInALog(t *testing.T) {
	now := time.Unix(0, 0)
	d := NewDisplay(Run{Work: Uploading, Files: 2})
	d.Note(1, "a", upload.Event{Kind: upload.Waiting, Size: 9, Delay: time.Second, Err: unavailable}, now)
	d.Note(1, "a", upload.Event{Kind: upload.LeaseHeld, Size: 9, Delay: time.Minute}, now)
	if line := d.plainLine(now); !strings.HasSuffix(line, ", 1 waiting: lease") {
		t.Errorf("the line of a log is %q", line)
	}
}

// TestRateOfResumedFiles checks that bytes of an earlier run do not count as sent in
// this one.
func TestRateOfResumedFiles(t *testing.T) {
	now := time.Unix(0, 0)
	d := NewDisplay(Run{Work: Uploading, Files: 2})
	for i := range int64(8) {
		d.Note(1, "a", upload.Event{Kind: upload.Progress, Size: 100 * mib, Sent: i * mib, Arrived: i * mib}, now)
		if i == 4 {
			d.Note(2, "b", upload.Event{Kind: upload.Resumed, Size: 2000 * mib, Sent: 1000 * mib, Arrived: 1000 * mib, Committed: 1000 * mib}, now)
		}
		now = now.Add(time.Second)
	}
	if got := d.meter.rate(now); got < 0.8*mib || got > 1.1*mib {
		t.Errorf("the rate is %s, want 1 MiB/s", readable.Rate(got))
	}
}

// TestDiscardedIsNoLoss checks that no loss is shown if an upload starts over because
// its file changed.
func TestDiscardedIsNoLoss(t *testing.T) {
	now := time.Unix(0, 0)
	tr := &activeFile{name: "a", size: -1}
	tr.note(upload.Event{Kind: upload.Resumed, Size: 100, Sent: 50, Arrived: 50, Committed: 50}, now)
	tr.note(upload.Event{Kind: upload.Discarded, Size: 100, Cause: "source changed"}, now)
	tr.note(upload.Event{Kind: upload.Started, Size: 100}, now)
	if state, _ := tr.state(now, false); strings.Contains(state, "lost") {
		t.Errorf("the state is %q", state)
	}
	if text := percentText(tr.highest, tr.size); text != "0%" {
		t.Errorf("%s, want 0%%", text)
	}
}

// TestLossIsShownWhileComparing checks that the frame explains a decreased percentage
// even while the source is being compared.
func TestLossIsShownWhileComparing(t *testing.T) {
	now := time.Unix(0, 0)
	tr := &activeFile{name: "a", size: -1}
	tr.note(upload.Event{Kind: upload.Progress, Size: 100, Sent: 90, Arrived: 90, Committed: 50}, now)
	tr.note(upload.Event{Kind: upload.Verifying, Size: 100, Sent: 20, Arrived: 20, Committed: 20, ToCompare: 20}, now)
	if state, _ := tr.state(now, false); state != "the service lost 70 B" {
		t.Errorf("the state is %q", state)
	}
}

// TestFrameOfComparison checks the frame of a run that only compares files.
func TestFrameOfComparison(t *testing.T) {
	now := time.Unix(0, 0)
	d := NewDisplay(Run{Work: Comparing, Files: -1})
	d.SetTotals(3, 100*mib)
	compared := func(n int64) {
		d.Note(1, "a", upload.Event{Kind: upload.Verifying, Size: 40 * mib, Compared: n * mib, ToCompare: 40 * mib}, now)
	}
	compared(1)
	now = now.Add(2 * time.Second)
	compared(21)
	d.End(2, result.Missing, &upload.Result{Size: 30 * mib}, now)
	d.End(3, result.Same, &upload.Result{Size: 10 * mib}, now)
	var lines []string
	for _, l := range d.frame(now, 80, 24) {
		lines = append(lines, l.text)
	}
	want := []string{
		"a                        [=====     ]  52%   10 MiB/s  ETA 0:02",
		"file 2 of 3           1 differs   read 61.0 of 100 MiB    10 MiB/s ETA 0:04",
	}
	if !slices.Equal(lines, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
	if line := d.plainLine(now); line != "file 2 of 3, 61 MiB read of 100 MiB, 1 differs  10 MiB/s  ETA 0:04" {
		t.Errorf("the line of a log is %q", line)
	}
}

// TestNoFrameAfterInterruption checks that a frame is removed when the command is
// interrupted: a second signal ends the process at once.
func TestNoFrameAfterInterruption(t *testing.T) {
	term := newTerminal(t, 80, 24, true)
	story(func(name string, d *Display, now time.Time) {
		term.console.ended = false
		term.show(d, now)
		term.do(term.console.EndFrames)
		term.show(d, now)
		if text := strings.TrimSpace(strings.Join(term.screen.Lines(), "")); text != "" {
			t.Fatalf("%s: left on the terminal: %q", name, text)
		}
	})
}

// TestFrameAfterStop checks that a process that continues after a stop does not
// overwrite output of the shell.
func TestFrameAfterStop(t *testing.T) {
	term := newTerminal(t, 80, 24, true)
	first := true
	story(func(_ string, d *Display, now time.Time) {
		if !first {
			return
		}
		first = false
		term.show(d, now)
		_ = term.screen.Write("^Z")
		term.do(term.console.Hide)
		_ = term.screen.Write("\r\n[1]+  Stopped\r\n$ fg\r\n")
		term.console.forget()
		term.show(d, now)
		if text := strings.Join(term.screen.Lines(), "\n"); !strings.Contains(text, "[1]+  Stopped\n$ fg\n") {
			t.Errorf("got\n%s", text)
		}
	})
}

// TestFrameIsDrawnAgainAfterSignal checks that SIGCONT makes the process draw a frame that has not changed.
func TestFrameIsDrawnAgainAfterSignal(t *testing.T) {
	term := newTerminal(t, 80, 24, true)
	frame := func() string {
		select {
		case text := <-term.out:
			return text
		case <-time.After(10 * time.Second):
			return ""
		}
	}
	stop, _ := ShowFrames(term.console, NewDisplay(Run{Work: Uploading, Files: -1}))
	first := frame()
	require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGCONT))
	second := frame()
	stop()
	if !strings.Contains(first, "file 0") || !strings.Contains(second, "file 0") {
		t.Errorf("got %q and %q", first, second)
	}
}

// TestRowsOfSmallFiles checks that a small file has no row when all of it is sent, unless the
// reply is late.
func TestRowsOfSmallFiles(t *testing.T) {
	now := time.Unix(0, 0)
	frame := func(d *Display, now time.Time) (rows []string) {
		for _, l := range d.frame(now, 80, 24) {
			name, _, _ := strings.Cut(l.text, "  ")
			rows = append(rows, name)
		}
		return rows
	}
	d := NewDisplay(Run{Work: Uploading, Files: 9})
	for id, sent := range []int64{1, 2, 1, 0} {
		d.Note(id, string(rune('a'+id)), upload.Event{Kind: upload.Progress, Size: 2, Sent: sent, Arrived: sent}, now)
	}
	d.Note(4, "e", upload.Event{Kind: upload.Progress, Size: 9 * mib, Sent: 9 * mib, Arrived: 9 * mib}, now)
	if got, want := frame(d, now), []string{"a", "c", "d", "e", "and 1 more", "file 0 of 9"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	d.Note(0, "a", upload.Event{Kind: upload.Progress, Size: 2, Sent: 2, Arrived: 2}, now)
	d.Note(3, "d", upload.Event{Kind: upload.Waiting, Size: 2, Sent: 2, Arrived: 2, Delay: time.Second, Err: unavailable}, now)
	if got, want := frame(d, now), []string{"c", "d", "e", "and 2 more", "file 0 of 9"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	now = now.Add(replyDelay)
	if got, want := frame(d, now), []string{"c", "d", "e", "a", "b", "file 0 of 9"}; !slices.Equal(got, want) {
		t.Errorf("late replies: got %q, want %q", got, want)
	}

	for columns, state := range map[int]string{40: "no reply yet", 80: "waiting for the reply"} {
		if row := d.frame(now, columns, 24)[3].text; !strings.HasSuffix(row, " 100% "+state) {
			t.Errorf("the row of a late reply is %q", row)
		}
	}

	d = NewDisplay(Run{Work: Uploading, Files: 9})
	for id := range 3 {
		d.Note(id, "a", upload.Event{Kind: upload.Progress, Size: 2, Sent: 2, Arrived: 2}, now)
	}
	if got, want := frame(d, now), []string{"3 files are being sent", "file 0 of 9"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	d = NewDisplay(Run{Work: Uploading, Files: 1})
	d.Note(0, "a", upload.Event{Kind: upload.Progress, Size: 2, Sent: 2, Arrived: 2}, now)
	if got, want := frame(d, now), []string{"a", "sent 2 of 2 B"}; !slices.Equal(got, want) {
		t.Errorf("a single file: got %q, want %q", got, want)
	}
}
