package screen

import (
	"io"
	"log/slog"
	"slices"
	"sync"
	"time"

	"gcsup/internal/cli/process"
	"gcsup/internal/cli/runlog"
)

// Console prints messages for people. On a terminal it keeps a frame, the progress
// of the run, below them.
type Console struct {
	mu      sync.Mutex
	w, out  io.Writer     // out is w or queue
	queue   *runlog.Queue // in front of w; if nil, messages are written at once
	quiet   bool
	verbose bool
	live    liveRegion
	ended   bool // no frame is shown any more
	log     *runlog.File
}

// NewConsole returns a console on w.
func NewConsole(w io.Writer, quiet bool) *Console {
	return &Console{w: w, out: w, quiet: quiet, live: newLiveRegion(), log: &runlog.File{}}
}

// NewQueuedConsole returns a console that queues its messages, so that a slow
// terminal does not block the caller. It must be flushed.
func NewQueuedConsole(w io.Writer, quiet, verbose bool) *Console {
	c := NewConsole(w, quiet)
	c.queue, c.verbose = runlog.NewQueue(w), verbose
	c.out = c.queue
	return c
}

// Log returns the log file, which has all messages once it is open.
func (c *Console) Log() *runlog.File { return c.log }

// Flush waits until everything is written.
func (c *Console) Flush() {
	if c.queue != nil {
		_ = c.queue.Flush()
	}
}

// Close makes later messages and Flush wait for a reader only for a moment.
func (c *Console) Close() {
	if c.queue != nil {
		c.queue.Close()
	}
}

// Message prints a line, unless the console is quiet. It replaces control characters
// in its arguments, see [process.Message].
func (c *Console) Message(format string, args ...any) {
	c.say(slog.LevelInfo, !c.quiet, process.Message(format, args...))
}

// Warning prints a message, which the log file has as a warning.
func (c *Console) Warning(format string, args ...any) {
	c.say(slog.LevelWarn, !c.quiet, process.Message(format, args...))
}

// Detail prints a message with --verbose, and otherwise only to the log file.
func (c *Console) Detail(format string, args ...any) {
	c.say(slog.LevelInfo, c.verbose && !c.quiet, process.Message(format, args...))
}

// Fail prints a line even if the console is quiet. It replaces control characters. attrs are
// attributes for the log file.
func (c *Console) Fail(text string, attrs ...slog.Attr) {
	c.FailBlock(process.Block(process.Printable(text)), attrs...)
}

// FailBlock is Fail for a text that may have several lines.
func (c *Console) FailBlock(text process.Block, attrs ...slog.Attr) {
	c.say(slog.LevelError, true, text, attrs...)
}

// say logs text, and prints it if shown is true.
func (c *Console) say(level slog.Level, shown bool, text process.Block, attrs ...slog.Attr) {
	c.log.Write(level, string(text), attrs...)
	if shown {
		_, _ = io.WriteString(c, "gcsup: "+string(text)+"\n")
	}
}

// Write prints whole lines above the frame.
func (c *Console) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.live.lines) == 0 {
		return c.out.Write(p)
	}
	columns, _, _ := c.size()
	lines, idle := c.live.lines, c.idle()
	text := c.live.draw(nil, columns) + string(p)
	if idle && columns == c.live.columns { // else the next frame draws it
		text += c.live.draw(lines, columns)
	}
	if _, err := io.WriteString(c.out, text); err != nil {
		return 0, err
	}
	return len(p), nil
}

// show replaces the frame; nil removes it.
func (c *Console) show(lines []liveLine) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		lines = nil
	}
	columns, _, _ := c.size()
	if lines != nil && !c.idle() || columns == c.live.columns && slices.Equal(lines, c.live.lines) {
		return // skip frames while the terminal lags behind
	}
	if text := c.live.draw(lines, columns); text != "" {
		_, _ = io.WriteString(c.out, text)
	}
}

// EndFrames removes the frame and prevents later ones. A process that exits
// afterwards leaves no frame on the terminal.
func (c *Console) EndFrames() {
	c.mu.Lock()
	c.ended = true
	c.mu.Unlock()
	c.show(nil)
}

// hideGrace is how long a terminal that does not read may delay the stop of the process.
const hideGrace = 200 * time.Millisecond

// Hide removes the frame before the process stops, or another one uses the terminal. The next one is drawn after that.
func (c *Console) Hide() {
	c.show(nil)
	written := make(chan struct{})
	go func() {
		c.Flush()
		close(written)
	}()
	select {
	case <-written:
	case <-time.After(hideGrace):
	}
}

// forget leaves the frame where it is. The next one is drawn at the cursor, because
// another program has written to the terminal.
func (c *Console) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.live.lines = nil
}

// idle reports whether all queued output is written.
func (c *Console) idle() bool { return c.queue == nil || c.queue.Idle() }

// size returns the size of the terminal. ok is false if there is none that can
// show a frame.
func (c *Console) size() (columns, height int, ok bool) { return process.Terminal(c.w) }
