// Package shell writes words for a POSIX shell.
package shell

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Quote quotes word, if necessary. A word with characters that cannot be printed has the form $'a\nb',
// which bash, zsh and POSIX.1-2024 know, so that the command is one line, and can be pasted.
func Quote(word string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=./:,@%+"
	if word != "" && strings.Trim(word, plain) == "" {
		return word
	}
	if strings.ContainsFunc(word, unprintable) {
		return "$'" + escaped(word) + "'"
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// unprintable reports whether r is a byte that is not valid UTF-8, or a character that controls the
// terminal.
func unprintable(r rune) bool {
	return r == utf8.RuneError || r != ' ' && !unicode.IsGraphic(r) || unicode.In(r, unicode.Zl, unicode.Zp)
}

// escaped returns word with its special characters as octal bytes.
func escaped(word string) string {
	var b strings.Builder
	for word != "" {
		r, n := utf8.DecodeRuneInString(word)
		switch {
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\'' || r == '\\':
			b.WriteString(`\` + word[:1])
		case unprintable(r):
			for _, c := range []byte(word[:n]) {
				fmt.Fprintf(&b, `\%03o`, c)
			}
		default:
			b.WriteString(word[:n])
		}
		word = word[n:]
	}
	return b.String()
}
