package screen

import (
	"fmt"
	"os"
	"runtime"
	"strings"

	"gcsup/internal/cli/cells"
	"gcsup/internal/cli/tty"
)

// Escape sequences of ECMA-48.
//
// When tmux breaks lines again, cells that were erased up to the end of a line still count, and
// those of a line that was erased whole do not. If the whole screen is erased below its first
// cell, tmux moves the old rows to its history. Rows are therefore erased one by one, and whole.
const (
	eraseLine  = "\x1b[2K" // the whole line
	eraseBelow = "\x1b[J"  // from the cursor to the end of the screen
)

// liveRegion is the frame at the bottom of a terminal. The cursor rests at the
// beginning of its last line.
type liveRegion struct {
	lines   []liveLine
	columns int  // of the terminal when it was drawn
	reflows bool // the terminal breaks long lines again when its width changes
	colors  bool
}

func newLiveRegion() liveRegion {
	// xterm, GNU screen and the Linux console cut lines that do not fit any more.
	cuts := os.Getenv("XTERM_VERSION") != "" || os.Getenv("STY") != "" || os.Getenv("TERM") == "linux"
	return liveRegion{reflows: !cuts, colors: os.Getenv("NO_COLOR") == ""}
}

// erase returns the sequences that remove the frame from a terminal that now has that
// many columns. They leave the cursor at the frame's first position.
func (r *liveRegion) erase(columns int) string {
	if len(r.lines) == 0 {
		return ""
	}
	up, below := r.above(columns), r.broken(r.lines[len(r.lines)-1], columns)
	return toTop(up) + eraseLine + strings.Repeat("\x1b[B"+eraseLine, up+below) + toTop(up+below)
}

// above returns how many rows of the frame are above the cursor.
func (r *liveRegion) above(columns int) (up int) {
	for _, l := range r.lines[:len(r.lines)-1] {
		up += 1 + r.broken(l, columns)
	}
	return up
}

// broken returns how many more rows a line takes because the terminal became narrower.
func (r *liveRegion) broken(l liveLine, columns int) int {
	if !r.reflows || columns <= 0 || columns >= r.columns {
		return 0
	}
	return max(cells.Width(l.text)-1, 0) / columns
}

// toTop returns the sequences that move the cursor to the beginning of a line above.
func toTop(up int) string {
	if up == 0 {
		return "\r"
	}
	return fmt.Sprintf("\r\x1b[%dA", up)
}

// draw returns the sequences that replace the frame.
func (r *liveRegion) draw(lines []liveLine, columns int) string {
	if len(lines) == 0 {
		text := r.erase(columns)
		r.lines = nil
		return text
	}
	var b strings.Builder
	switch {
	case len(r.lines) > 0 && columns == r.columns:
		b.WriteString(toTop(r.above(columns))) // overwriting does not flicker
	default:
		b.WriteString(r.erase(columns))
	}
	for i, l := range lines {
		if i > 0 {
			b.WriteString("\r\n")
		}
		b.WriteString(eraseLine)
		if l.color != "" && r.colors {
			fmt.Fprintf(&b, "\x1b[%sm%s\x1b[m", l.color, l.text)
		} else {
			b.WriteString(l.text)
		}
	}
	b.WriteString(eraseBelow + "\r")
	r.lines, r.columns = lines, columns
	return b.String()
}

// SameTerminal reports whether a and b are one terminal that can show a live region.
func SameTerminal(a, b any) bool {
	if _, _, ok := tty.Size(a); !ok {
		return false
	}
	if _, _, ok := tty.Size(b); !ok {
		return false
	}
	infoA, errA := a.(*os.File).Stat()
	infoB, errB := b.(*os.File).Stat()
	// Windows has no identity for consoles, but a process has only one.
	return errA == nil && errB == nil && (runtime.GOOS == "windows" || os.SameFile(infoA, infoB))
}
