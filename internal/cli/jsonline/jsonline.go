// Package jsonline writes JSON Lines, the form of all output of --json. An unknown field is null.
package jsonline

import (
	"bytes"
	"encoding/json"
	"io"
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

// Print writes v as one line of JSON, in one Write.
func Print(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}
