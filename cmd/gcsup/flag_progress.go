package main

import (
	"errors"
	"io/fs"
	"os"
	"runtime"
	"strings"

	"github.com/spf13/pflag"
	"golang.org/x/term"

	"gcsup/internal/cli/process"
	"gcsup/internal/cli/screen"
	"gcsup/internal/cli/shell"
)

// progressMode is --progress: how a run shows its progress on standard error.
type progressMode string

const (
	progressAuto  progressMode = "auto"
	progressBlock progressMode = "block" // lines at the bottom of the terminal that change
	progressLines progressMode = "lines" // a line now and then
	progressOff   progressMode = "off"
)

func (m *progressMode) add(fs *pflag.FlagSet) {
	*m = progressAuto
	fs.Var(m, "progress", "how progress is shown on standard error: "+strings.Join(m.Values(), ", ")+". auto is block on a terminal, and lines otherwise")
}

// Values returns the valid values.
func (*progressMode) Values() []string {
	return []string{string(progressAuto), string(progressBlock), string(progressLines), string(progressOff)}
}

func (m *progressMode) Type() string   { return "MODE" }
func (m *progressMode) String() string { return string(*m) }

func (m *progressMode) Set(text string) error {
	switch mode := progressMode(text); mode {
	case progressAuto, progressBlock, progressLines, progressOff:
		*m = mode
		return nil
	}
	return errors.New("want " + strings.Join(m.Values(), ", "))
}

// view is what a run shows, besides messages.
type view struct {
	progress progressMode // never progressAuto
	results  bool         // a line for each result
}

// start shows d on c, in the way of the view, until stop is called.
func (v view) start(c *screen.Console, d *screen.Display) (stop func(), stopped <-chan struct{}) {
	if v.progress == progressBlock {
		return screen.ShowFrames(c, d)
	}
	return screen.ShowLines(c, d)
}

// view returns what a run shows on std.
func (m progressMode) view(std stdio, quiet, verbose bool) view {
	if quiet {
		return view{progress: progressOff}
	}
	if m == progressAuto {
		m = progressBlock
		// The log would push the block around, and so would a program such as tee, which
		// writes to the same terminal.
		if verbose || isPipe(std.out) {
			m = progressLines
		}
	}
	if _, _, ok := process.Terminal(std.err); m == progressBlock && !ok {
		m = progressLines
	}
	return view{m, m == progressLines || verbose || !isTerminal(std.out)}
}

// isTerminal reports whether stream is a terminal.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// isPipe reports whether stream is a pipe.
func isPipe(stream any) bool {
	f, ok := stream.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&fs.ModeNamedPipe != 0
}

// whileTyping returns the mode of a run that reads its input from in. A block would disturb a user
// who types the input on the terminal.
func (m progressMode) whileTyping(in any) progressMode {
	if m == progressAuto && isTerminal(in) {
		return progressLines
	}
	return m
}

// announcePipe prints that nothing shows whether the program before the pipe succeeded, if a person may read it.
func announcePipe(c *screen.Console, std stdio, destination string) {
	if isPipe(std.in) && isTerminal(std.err) {
		c.Message("the object is made even if the program before the pipe fails; to prevent that, run it with: %s cp %s -- COMMAND", process.Words(), shell.Quote(destination))
	}
}

// announceTyping prints what the run waits for, if the user must type it.
func announceTyping(c *screen.Console, in any, what string) {
	if isTerminal(in) {
		end := "Ctrl-D"
		if runtime.GOOS == "windows" {
			end = "Ctrl-Z and Enter"
		}
		c.Message("reading %s from the terminal: %s ends the input", what, end)
	}
}
