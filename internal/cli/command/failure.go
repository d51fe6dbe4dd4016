// Package command runs a program whose standard output is uploaded: gcsup cp gs://BUCKET/OBJECT -- COMMAND.
//
// The program leads a process group, which is ended as a whole. It is in the background of the terminal, so
// that Ctrl-C reaches this process. When it reads from the terminal, it gets the terminal until its next output.
package command

import (
	"io"
	"os"
	"strconv"
	"time"

	"gcsup/internal/cli/exit"
)

// Options describe a command and its surroundings.
type Options struct {
	Args  []string  // the program and its arguments
	Env   []string  // its environment
	Stdin io.Reader // its standard input

	// Stderr gets its standard error. A program inherits a file. Another writer gets whole lines, and
	// everything at once while the program has the terminal.
	Stderr io.Writer

	Say  func(text string) // called with what the upload waits for
	Lend func()            // called before the program uses the terminal
}

// patience is how long an upload waits, for the second one of the end of a program and the end of its output, before it says so.
const patience = 2 * time.Second

// Failure is the error of a command that could not be started, or did not exit with 0.
type Failure struct {
	ExitCode int    // -1 if it did not exit
	Signal   string // that ended it, such as SIGKILL, or ""
	Err      error  // why it could not be started, or nil
}

func (f *Failure) Error() string {
	switch {
	case f.Err != nil:
		return "the command cannot be started: " + f.Err.Error()
	case f.Signal != "":
		return "the command was ended by " + f.Signal
	}
	return "the command exited with code " + strconv.Itoa(f.ExitCode)
}

// Unwrap returns [exit.ErrCommand].
func (f *Failure) Unwrap() error { return exit.ErrCommand }

// inherits returns w if it is a file.
func inherits(w io.Writer) *os.File {
	f, _ := w.(*os.File)
	return f
}
