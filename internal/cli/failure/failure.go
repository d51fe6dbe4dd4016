// Package failure classifies the errors of gcsup and gcsup-fleet.
package failure

import (
	"errors"
	"fmt"

	"gcsup/internal/cli/exitcode"
	"gcsup/upload/errkind"
)

// Kinds of errors that the commands make.
var (
	ErrUsage   = errors.New("usage")
	ErrSource  = errors.New("source")
	ErrConfig  = errors.New("configuration")
	ErrDiffers = errors.New("differs") // a file is not what its object is
)

// WithKind returns an error with the text of err that wraps both err and kind, which
// is one of those above or a sentinel of a library.
func WithKind(err, kind error) error { return kindError{err, kind} }

type kindError struct {
	error
	kind error
}

func (k kindError) Unwrap() []error { return []error{k.error, k.kind} }

// Usagef returns an error of kind ErrUsage.
func Usagef(format string, args ...any) error {
	return WithKind(fmt.Errorf(format, args...), ErrUsage)
}

// Class is a class of errors. Scripts branch on its kind and code.
type Class struct {
	Kind string // in the JSON output, see package errkind
	Code int    // of package exitcode
}

// own are the kinds of errors that the commands make. They come before those of the library.
var own = []struct {
	is   error
	kind string
}{
	{ErrUsage, "usage"},
	{ErrSource, errkind.NoInput},
	{ErrConfig, "configuration"},
	{ErrDiffers, "differs"},
}

// Codes has the exit code of each kind of error that the commands can end with.
var Codes = map[string]int{
	"usage":                exitcode.Usage,
	"invalid":              exitcode.Usage,
	"source_changed":       exitcode.Data,
	"checksum":             exitcode.Data,
	"unexpected_data":      exitcode.Data,
	"protocol":             exitcode.Data,
	"options_differ":       exitcode.Data,
	"corrupt_saved_upload": exitcode.Data,
	"differs":              exitcode.Data,
	errkind.NoInput:        exitcode.NoInput,
	"no_saved_upload":      exitcode.NoInput,
	"not_found":            exitcode.Unavailable,
	"session_lost":         exitcode.Unavailable,
	"canceled":             exitcode.Unavailable,
	"quota":                exitcode.Unavailable,
	"precondition":         exitcode.Exists,
	"outcome_unknown":      exitcode.Exists,
	errkind.LocalIO:        exitcode.IO,
	"interrupted":          exitcode.Temporary,
	"retries_exhausted":    exitcode.Temporary,
	"in_use":               exitcode.Temporary,
	"credentials":          exitcode.Permission,
	"permission":           exitcode.Permission,
	"configuration":        exitcode.Config,
	"encryption_key":       exitcode.Config,
	"state_key":            exitcode.Config,
	"uri_mismatch":         exitcode.Config,
	"insecure_permissions": exitcode.Config,
	"newer_version":        exitcode.Config,
}

// Classify returns the class of an error. An error of a kind that the commands do not end
// with counts as local I/O.
func Classify(err error) Class {
	kind := ownKind(err)
	if kind == "" {
		kind = errkind.Of(err)
	}
	code, ok := Codes[kind]
	if !ok {
		kind, code = errkind.LocalIO, exitcode.IO
	}
	return Class{kind, code}
}

// OfCommand reports whether err is of a kind that the commands make.
func OfCommand(err error) bool { return ownKind(err) != "" }

// ownKind returns the kind of an error that the commands make, or "".
func ownKind(err error) string {
	for _, o := range own {
		if errors.Is(err, o.is) {
			return o.kind
		}
	}
	return ""
}
