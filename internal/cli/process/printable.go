package process

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"gcsup/internal/cli/exit"
)

// Printable replaces control characters, so that the text stays on one line and cannot
// control the terminal.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp) || r == utf8.RuneError {
			return '?'
		}
		return r
	}, text)
}

// Block is a text of one or several lines without other control characters.
type Block string

// Message returns fmt.Sprintf with printable arguments: a name with a line break must not make a
// line of its own. An argument that is a Block keeps its lines.
func Message(format string, args ...any) Block {
	for i, arg := range args {
		switch arg := arg.(type) {
		case string:
			args[i] = Printable(arg)
		case error:
			args[i] = PrintableError(exit.Text(arg), arg)
		}
	}
	return Block(fmt.Sprintf(format, args...))
}

// WithLines returns err with lines below its text, such as a list of candidates. Each of them begins
// with a line break.
func WithLines(err error, lines Block) error { return withLines{err, lines} }

type withLines struct {
	error
	lines Block
}

func (w withLines) Error() string { return w.error.Error() + string(w.lines) }
func (w withLines) Unwrap() error { return w.error }

// PrintableError is Printable for a text that contains the text of err. It keeps the lines of
// WithLines.
func PrintableError(text string, err error) Block {
	w, ok := errors.AsType[withLines](err)
	if !ok {
		return Block(Printable(text))
	}
	before, after, _ := strings.Cut(text, string(w.lines))
	return Block(Printable(before)) + w.lines + Block(Printable(after))
}
