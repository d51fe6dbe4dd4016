// Package oneline makes the text of another machine fit for an error message.
package oneline

import (
	"strings"
	"unicode"
)

// limit bounds the bytes of a text that [Text] returns, without the ellipsis.
const limit = 300

// Text returns text on one line, without control characters, and shortened,
// for use in an error message.
func Text(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > limit {
		text = strings.ToValidUTF8(text[:limit], "") + "…"
	}
	return text
}
