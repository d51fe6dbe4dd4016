// Package failure classifies the errors of gcsup and gcsup-fleet.
package failure

import (
	"context"
	"errors"
	"fmt"

	"gcsup/chunk"
	"gcsup/internal/cli/exitcode"
	"gcsup/session"
	"gcsup/session/state"
	"gcsup/session/state/bucketstore"
	"gcsup/upload"
	"gcsup/upload/manifest"
	"gcsup/upload/tree"
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
	Is   error  // errors.Is matches it; nil matches every error
	Kind string // in the JSON output
	Code int    // of package exitcode

	// Hint is the advice for the user, or "" if the error's text suffices. {gcsup} in it
	// stands for the words that run gcsup.
	Hint string
}

// LocalIO is the kind of the errors that have no sentinel.
const LocalIO = "local_io"

// Classes is the table of classes. The first match counts. The last one matches
// every error.
var Classes = []Class{
	{ErrUsage, "usage", exitcode.Usage, ""},
	{tree.ErrUsage, "usage", exitcode.Usage, ""},
	{tree.ErrCollision, "usage", exitcode.Usage, ""},
	{ErrSource, "no_input", exitcode.NoInput, ""},
	{tree.ErrSymlink, "no_input", exitcode.NoInput, ""},
	{tree.ErrNotRegular, "no_input", exitcode.NoInput, ""},
	{tree.ErrName, "no_input", exitcode.NoInput, ""},
	{ErrConfig, "configuration", exitcode.Config, ""},
	{ErrDiffers, "differs", exitcode.Data, ""},
	{context.Canceled, "interrupted", exitcode.Temporary, ""},
	{state.ErrInUse, "in_use", exitcode.Temporary, ""},
	{manifest.ErrLocked, "in_use", exitcode.Temporary, ""},
	{manifest.ErrVersion, "newer_version", exitcode.Config, "use the newer program, or name another manifest"},
	{manifest.ErrFormat, "usage", exitcode.Usage, "name another file"},
	{bucketstore.ErrSlow, "retries_exhausted", exitcode.Temporary, "give a longer lease (--state-lease, or --ack-wait of gcsup-fleet)"},
	{session.ErrRetriesExhausted, "retries_exhausted", exitcode.Temporary, ""},
	{session.ErrSourceChanged, "source_changed", exitcode.Data, "to upload the changed file, add --if-source-changed=restart"},
	{session.ErrChecksum, "checksum", exitcode.Data, ""},
	{session.ErrUnexpectedData, "foreign_writer", exitcode.Data, ""},
	{session.ErrProtocol, "contradiction", exitcode.Data, ""},
	{state.ErrOptionsDiffer, "options", exitcode.Data, "give the options of the first run, or none; --restart discards what was sent"},
	{session.ErrEncryptionKey, "encryption_key", exitcode.Config, "give the key of the first run with --encryption-key-file or GCSUP_ENCRYPTION_KEY"},
	{bucketstore.ErrSealed, "state_key", exitcode.Config, "give the key with which it was saved with --state-key-file; to delete it, run {gcsup} sessions rm ID"},
	{state.ErrCorruptToken, "damaged", exitcode.Data, "to start over, upload the file again; to delete it, run {gcsup} sessions rm ID"},
	{state.ErrTokenVersion, "newer_version", exitcode.Config, "use the newer program; to delete it, run {gcsup} sessions rm ID"},
	{chunk.ErrNotRegular, "no_input", exitcode.NoInput, ""},
	{upload.ErrSourceNeeded, "no_input", exitcode.NoInput, ""},
	{state.ErrNoToken, "no_saved_upload", exitcode.NoInput, "see {gcsup} sessions list"},
	{session.ErrNotFound, "not_found", exitcode.Unavailable, "create the bucket, or correct its name or the endpoint"},
	{session.ErrSessionLost, "session_gone", exitcode.Unavailable, ""},
	{session.ErrCanceled, "cancelled", exitcode.Unavailable, "run the same command again to start over"},
	{session.ErrQuota, "quota", exitcode.Unavailable, ""},
	{session.ErrOutcomeUnknown, "outcome_unknown", exitcode.Exists, "check the object before you run the command again"},
	{session.ErrPrecondition, "precondition", exitcode.Exists, ""},
	{session.ErrCredentials, "credentials", exitcode.Permission, "log in again (gcloud auth application-default login), or set GOOGLE_APPLICATION_CREDENTIALS to another key file"},
	{session.ErrPermission, "permission", exitcode.Permission, "the account needs storage.objects.create on the bucket, and storage.objects.delete to replace an object"},
	{state.ErrInsecurePermissions, "unsafe_state", exitcode.Config, ""},
	{session.ErrURIMismatch, "endpoint", exitcode.Config, ""},
	{session.ErrInvalid, "invalid", exitcode.Usage, ""},
	{nil, LocalIO, exitcode.IO, ""},
}

// Classify returns the first class that matches err.
func Classify(err error) Class {
	for _, c := range Classes {
		if c.Is == nil || errors.Is(err, c.Is) {
			return c
		}
	}
	panic("unreachable: the last class matches every error")
}
