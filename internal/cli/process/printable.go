package process

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Printable replaces control characters, so that the text stays on one line and cannot
// control the terminal.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == utf8.RuneError {
			return '?'
		}
		return r
	}, text)
}

// PrintableLines replaces control characters other than line breaks.
func PrintableLines(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = Printable(line)
	}
	return strings.Join(lines, "\n")
}

// PrintablePath replaces control characters of path in a message. A console prints
// a message of several lines as it is, and a path can have line breaks.
func PrintablePath(message, path string) string {
	if clean := Printable(path); clean != path {
		return strings.ReplaceAll(message, path, clean)
	}
	return message
}
