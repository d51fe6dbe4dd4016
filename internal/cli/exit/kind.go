package exit

import (
	"errors"
	"fmt"

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
	Code int    // one of the exit codes
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
	"usage":                Usage,
	"invalid":              Usage,
	"source_changed":       Data,
	"checksum":             Data,
	"unexpected_data":      Data,
	"protocol":             Data,
	"options_differ":       Data,
	"corrupt_saved_upload": Data,
	"incomplete":           Data,
	"differs":              Data,
	errkind.NoInput:        NoInput,
	"no_saved_upload":      NoInput,
	"not_found":            Unavailable,
	"session_lost":         Unavailable,
	"canceled":             Unavailable,
	"quota":                Unavailable,
	"precondition":         Exists,
	"too_many_deletions":   Exists,
	"no_files":             NoInput,
	"nothing_deleted":      IO,
	"outcome_unknown":      Exists,
	errkind.LocalIO:        IO,
	"interrupted":          Temporary,
	"retries_exhausted":    Temporary,
	"in_use":               Temporary,
	"credentials":          Permission,
	"permission":           Permission,
	"configuration":        Config,
	"encryption_key":       Config,
	"state_key":            Config,
	"uri_mismatch":         Config,
	"insecure_permissions": Config,
	"newer_version":        Config,
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
		kind, code = errkind.LocalIO, IO
	}
	return Class{kind, code}
}

// ofCommand reports whether err is of a kind that the commands make.
func ofCommand(err error) bool { return ownKind(err) != "" }

// ownKind returns the kind of an error that the commands make, or "".
func ownKind(err error) string {
	for _, o := range own {
		if errors.Is(err, o.is) {
			return o.kind
		}
	}
	return ""
}
