// Package printable makes the text of a server or a file name safe to print.
package printable

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Line replaces control characters, so that the text stays on one line and cannot
// control the terminal.
func Line(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == utf8.RuneError {
			return '?'
		}
		return r
	}, text)
}

// Lines replaces control characters other than line breaks.
func Lines(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = Line(line)
	}
	return strings.Join(lines, "\n")
}
