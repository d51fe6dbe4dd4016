package process

import (
	"os"

	"golang.org/x/term"
)

// Terminal returns the size of the terminal w in characters. ok is false if w is not a terminal that
// understands escape sequences.
func Terminal(w any) (columns, height int, ok bool) {
	f, isFile := w.(*os.File)
	if !isFile || os.Getenv("TERM") == "dumb" || !term.IsTerminal(int(f.Fd())) || !escapes(f) {
		return 0, 0, false
	}
	columns, height, err := term.GetSize(int(f.Fd()))
	if err != nil || columns <= 0 || height <= 0 {
		columns, height = 80, 24 // some pseudo-terminals report no size
	}
	return columns, height, true
}
