package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"
)

// console prints messages for people. On a terminal it keeps one live line, the
// progress bar, below them.
type console struct {
	mu    sync.Mutex
	w     io.Writer
	queue *lineQueue // in front of w; if nil, messages are written at once
	quiet bool
	live  string
}

func newConsole(w io.Writer, quiet bool) *console { return &console{w: w, quiet: quiet} }

// newQueuedConsole returns a console that queues its messages, so that a slow
// terminal does not block the caller. It must be flushed.
func newQueuedConsole(w io.Writer, quiet bool) *console {
	return &console{w: w, queue: newLineQueue(w), quiet: quiet}
}

// out returns the writer that the console uses.
func (c *console) out() io.Writer {
	if c.queue != nil {
		return c.queue
	}
	return c.w
}

// message prints a line, unless the console is quiet.
func (c *console) message(format string, args ...any) {
	if !c.quiet {
		c.fail(fmt.Sprintf(format, args...))
	}
}

// fail prints a line even if the console is quiet.
func (c *console) fail(text string) {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = printable(line)
	}
	_, _ = c.Write([]byte("gcsup: " + strings.Join(lines, "\n") + "\n"))
}

// Write prints whole lines above the live line.
func (c *console) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	live := c.live
	c.draw("")
	n, err := c.out().Write(p)
	c.draw(live)
	return n, err
}

// show replaces the live line; "" removes it.
func (c *console) show(line string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.draw(line)
}

// draw overwrites the live line. It uses spaces, because some terminals do not
// understand escape sequences.
func (c *console) draw(line string) {
	if line == c.live || line != "" && c.queue != nil && !c.queue.idle() {
		return // skip frames while the terminal lags behind
	}
	text := "\r" + line
	if extra := utf8.RuneCountInString(c.live) - utf8.RuneCountInString(line); extra > 0 {
		text += strings.Repeat(" ", extra)
		if line == "" {
			text += "\r"
		}
	}
	_, _ = io.WriteString(c.out(), text)
	c.live = line
}

// width returns the terminal's width. ok is false if w is not a terminal that
// can show a live line.
func (c *console) width() (columns int, ok bool) {
	f, isFile := c.w.(*os.File)
	if !isFile || os.Getenv("TERM") == "dumb" || !term.IsTerminal(int(f.Fd())) {
		return 0, false
	}
	columns, _, err := term.GetSize(int(f.Fd()))
	if err != nil || columns <= 0 {
		columns = 80 // some pseudo-terminals report no size
	}
	return columns, true
}

// printable replaces control characters, so that the text of a server or a file
// name stays on one line and cannot control the terminal.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == utf8.RuneError {
			return '?'
		}
		return r
	}, text)
}

// printablePath replaces control characters of path in a message. A console prints
// a message of several lines as it is, and a path can have line breaks.
func printablePath(message, path string) string {
	if clean := printable(path); clean != path {
		return strings.ReplaceAll(message, path, clean)
	}
	return message
}
