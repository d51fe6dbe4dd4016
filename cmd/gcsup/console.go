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

// console is where messages for people go. On a terminal it keeps one live
// line, the progress bar, below them.
type console struct {
	mu    sync.Mutex
	w     io.Writer
	queue *lineQueue // in front of w; nil: messages are written at once
	quiet bool
	live  string
}

func newConsole(w io.Writer, quiet bool) *console { return &console{w: w, quiet: quiet} }

// newQueuedConsole returns a console whose messages wait for the terminal, so
// that nothing waits for them. It must be flushed.
func newQueuedConsole(w io.Writer, quiet bool) *console {
	return &console{w: w, queue: newLineQueue(w), quiet: quiet}
}

// out is where the console writes.
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

// fail prints a line, also when the console is quiet.
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

// draw overwrites with spaces: it needs no escape sequences, which some
// terminals do not know.
func (c *console) draw(line string) {
	if line == c.live || line != "" && c.queue != nil && !c.queue.idle() {
		return // a terminal that is behind gets no more frames
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

// width is that of the terminal; ok is false where there is none that could
// have a live line.
func (c *console) width() (columns int, ok bool) {
	f, isFile := c.w.(*os.File)
	if !isFile || os.Getenv("TERM") == "dumb" || !term.IsTerminal(int(f.Fd())) {
		return 0, false
	}
	columns, _, err := term.GetSize(int(f.Fd()))
	if err != nil || columns <= 0 {
		columns = 80 // some pseudo-terminals do not say
	}
	return columns, true
}

// printable makes one line of text, and keeps what a server or a file's name
// says from steering the terminal.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == utf8.RuneError {
			return '?'
		}
		return r
	}, text)
}
