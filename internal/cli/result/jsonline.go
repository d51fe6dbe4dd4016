package result

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"unicode"
	"unicode/utf8"
)

// Known returns a pointer to v, or nil if it is not known.
func Known[T any](v T, is bool) *T {
	if !is {
		return nil
	}
	return &v
}

// Encode returns v as one line of JSON.
func Encode(v any) ([]byte, error) {
	var line bytes.Buffer
	err := Print(&line, v)
	return line.Bytes(), err
}

// Print writes v as one line of JSON, in one Write. Characters that could control a terminal are escaped.
func Print(w io.Writer, v any) error {
	var line bytes.Buffer
	e := json.NewEncoder(&line)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err
	}
	text := line.Bytes()
	if bytes.ContainsFunc(text, controls) {
		text = escape(text)
	}
	_, err := w.Write(text)
	return err
}

// controls reports whether a terminal may obey a character that package json does not escape: U+009B begins the same
// sequences as ESC and a bracket, and a Bidi_Control changes the order of what is displayed.
func controls(r rune) bool {
	return r >= 0x7f && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r))
}

// escape replaces controls, which are only in strings.
func escape(line []byte) []byte {
	var escaped []byte
	for _, r := range string(line) {
		if controls(r) {
			escaped = fmt.Appendf(escaped, `\u%04x`, r)
		} else {
			escaped = utf8.AppendRune(escaped, r)
		}
	}
	return escaped
}
