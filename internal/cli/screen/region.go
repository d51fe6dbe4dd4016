package screen

import (
	"fmt"
	"os"
	"runtime"
	"strings"

	"gcsup/internal/cli/process"
)

// Escape sequences of ECMA-48, and DECAWM of the VT100.
//
// When tmux breaks lines again, cells that were erased up to the end of a line still count, and
// those of a line that was erased whole do not. Rows are therefore erased whole. If the whole screen
// is erased from its first cell, tmux moves the old rows to its history.
const (
	eraseLine  = "\x1b[2K"                                // the whole line
	eraseBelow = "\x1b[J"                                 // from the cursor to the end of the screen
	eraseRest  = "\x1b[C" + eraseBelow + "\r" + eraseLine // from the beginning of a line; not from the first cell of the screen
	cut        = "\x1b[?7l"                               // cut lines at the margin from now on
	wrap       = "\x1b[?7h"                               // break them
)

// liveRegion is the frame at the bottom of a terminal. The cursor rests at the beginning of its first
// line, so that all of the frame is below it, in however many rows the terminal has broken the
// lines. The width need not be known, and it is not: while a window is dragged, a program learns of a
// new width late, tmux by up to 250 ms.
type liveRegion struct {
	lines   []liveLine
	columns int // of the terminal when it was drawn, as far as the program knew
	colors  bool
}

func newLiveRegion() liveRegion { return liveRegion{colors: os.Getenv("NO_COLOR") == ""} }

// draw returns the sequences that replace the frame, or remove it if there are no lines. They leave the cursor at
// the frame's first position. No line is broken while it is drawn, even if the terminal is narrower than the
// program knows.
func (r *liveRegion) draw(lines []liveLine, columns int) string {
	last, shown := len(lines)-1, len(r.lines) > 0
	r.lines = lines
	switch {
	case last < 0 && shown:
		return "\r" + eraseRest
	case last < 0:
		return ""
	}
	r.columns = columns
	rows := make([]string, len(lines))
	for i, l := range lines {
		if rows[i] = l.text; l.color != "" && r.colors {
			rows[i] = "\x1b[" + l.color + "m" + l.text + "\x1b[m"
		}
		if i < last {
			rows[i] = eraseLine + rows[i] // overwriting does not flicker
		}
	}
	rows[last] = eraseRest + rows[last]
	text := cut + "\r" + strings.Join(rows, "\r\n") + "\r"
	if last > 0 {
		text += fmt.Sprintf("\x1b[%dA", last)
	}
	return text + wrap
}

// SameTerminal reports whether a and b are one terminal that can show a live region.
func SameTerminal(a, b any) bool {
	_, _, okA := process.Terminal(a)
	_, _, okB := process.Terminal(b)
	if !okA || !okB {
		return false
	}
	infoA, errA := a.(*os.File).Stat()
	infoB, errB := b.(*os.File).Stat()
	// Windows has no identity for consoles, but a process has only one.
	return errA == nil && errB == nil && (runtime.GOOS == "windows" || os.SameFile(infoA, infoB))
}
