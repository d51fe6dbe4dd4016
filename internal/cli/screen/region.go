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

// erase returns the sequences that remove the frame. They leave the cursor at the frame's first position.
func (r *liveRegion) erase() string {
	if len(r.lines) == 0 {
		return ""
	}
	return "\r" + eraseRest
}

// draw returns the sequences that replace the frame. No line is broken while it is drawn, even if the
// terminal is narrower than the program knows.
func (r *liveRegion) draw(lines []liveLine, columns int) string {
	if len(lines) == 0 {
		text := r.erase()
		r.lines = nil
		return text
	}
	var b strings.Builder
	b.WriteString(cut + "\r")
	for i, l := range lines {
		if i > 0 {
			b.WriteString("\r\n")
		}
		if i < len(lines)-1 {
			b.WriteString(eraseLine) // overwriting does not flicker
		} else {
			b.WriteString(eraseRest)
		}
		if l.color != "" && r.colors {
			fmt.Fprintf(&b, "\x1b[%sm%s\x1b[m", l.color, l.text)
		} else {
			b.WriteString(l.text)
		}
	}
	b.WriteString("\r")
	if up := len(lines) - 1; up > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", up)
	}
	b.WriteString(wrap)
	r.lines, r.columns = lines, columns
	return b.String()
}

// SameTerminal reports whether a and b are one terminal that can show a live region.
func SameTerminal(a, b any) bool {
	if _, _, ok := process.Terminal(a); !ok {
		return false
	}
	if _, _, ok := process.Terminal(b); !ok {
		return false
	}
	infoA, errA := a.(*os.File).Stat()
	infoB, errB := b.(*os.File).Stat()
	// Windows has no identity for consoles, but a process has only one.
	return errA == nil && errB == nil && (runtime.GOOS == "windows" || os.SameFile(infoA, infoB))
}
