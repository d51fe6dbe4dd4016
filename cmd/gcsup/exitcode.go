package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"gcsup/chunk"
	"gcsup/session"
	"gcsup/session/bucketstore"
	"gcsup/upload/manifest"
	"gcsup/upload/tree"
)

// The exit codes. They are those of sysexits.h if it has a matching one.
const (
	exitOK          = 0
	exitUsage       = 64
	exitData        = 65
	exitNoInput     = 66
	exitUnavailable = 69
	exitExists      = 73
	exitIO          = 74
	exitTemporary   = 75
	exitPermission  = 77
	exitConfig      = 78
	exitSignal      = 130
)

// failure is a class of errors. Scripts branch on its kind and code.
type failure struct {
	is   error  // errors.Is matches it; nil matches every error
	kind string // in the JSON output
	code int
	hint string // what to do; "" if the error's text explains it
}

// failures returns the table of failures. The first match counts. The last one
// is local I/O, which has no sentinel.
func failures() []failure {
	return []failure{
		{errUsage, "usage", exitUsage, ""},
		{tree.ErrUsage, "usage", exitUsage, ""},
		{tree.ErrCollision, "usage", exitUsage, ""},
		{errSource, "no_input", exitNoInput, ""},
		{tree.ErrSymlink, "no_input", exitNoInput, ""},
		{tree.ErrNotRegular, "no_input", exitNoInput, ""},
		{tree.ErrName, "no_input", exitNoInput, ""},
		{errConfig, "configuration", exitConfig, ""},
		{errDiffers, "differs", exitData, ""},
		{context.Canceled, "interrupted", exitTemporary, ""},
		{session.ErrInUse, "in_use", exitTemporary, ""},
		{manifest.ErrLocked, "in_use", exitTemporary, ""},
		{manifest.ErrVersion, "newer_version", exitConfig, "use the newer program, or name another manifest"},
		{manifest.ErrFormat, "usage", exitUsage, "name another file"},
		{session.ErrRetriesExhausted, "retries_exhausted", exitTemporary, ""},
		{session.ErrSourceChanged, "source_changed", exitData, "to upload the changed file, add --if-source-changed=restart"},
		{session.ErrChecksum, "checksum", exitData, ""},
		{session.ErrUnexpectedData, "foreign_writer", exitData, ""},
		{session.ErrProtocol, "contradiction", exitData, ""},
		{session.ErrOptionsDiffer, "options", exitData, "give the options of the first run, or none; --restart discards what was sent"},
		{session.ErrEncryptionKey, "encryption_key", exitConfig, "give the key of the first run with --encryption-key-file or " + encryptionKeyEnv},
		{bucketstore.ErrSealed, "state_key", exitConfig, "give the key with which it was saved with --state-key-file; to delete it, run " + program() + " sessions rm ID"},
		{session.ErrCorruptToken, "damaged", exitData, "to start over, upload the file again; to delete it, run " + program() + " sessions rm ID"},
		{session.ErrTokenVersion, "newer_version", exitConfig, "use the newer program; to delete it, run " + program() + " sessions rm ID"},
		{chunk.ErrNotRegular, "no_input", exitNoInput, ""},
		{session.ErrNoToken, "no_saved_upload", exitNoInput, "see " + program() + " sessions list"},
		{session.ErrNotFound, "not_found", exitUnavailable, "create the bucket, or correct its name or the endpoint"},
		{session.ErrSessionLost, "session_gone", exitUnavailable, ""},
		{session.ErrCanceled, "cancelled", exitUnavailable, "run the same command again to start over"},
		{session.ErrQuota, "quota", exitUnavailable, ""},
		{session.ErrOutcomeUnknown, "outcome_unknown", exitExists, "check the object before you run the command again"},
		{session.ErrPrecondition, "precondition", exitExists, ""},
		{session.ErrCredentials, "credentials", exitPermission, "log in again (gcloud auth application-default login), or set GOOGLE_APPLICATION_CREDENTIALS to another key file"},
		{session.ErrPermission, "permission", exitPermission, "the account needs storage.objects.create on the bucket, and storage.objects.delete to replace an object"},
		{session.ErrInsecurePermissions, "unsafe_state", exitConfig, ""},
		{session.ErrURIMismatch, "endpoint", exitConfig, ""},
		{session.ErrInvalid, "invalid", exitUsage, ""},
		{nil, "local_io", exitIO, ""},
	}
}

// classify returns the first failure that matches err.
func classify(err error) failure {
	for _, f := range failures() {
		if f.is == nil || errors.Is(err, f.is) {
			return f
		}
	}
	panic("unreachable: the last failure matches every error")
}

// Kinds of errors that this package makes.
var (
	errUsage  = errors.New("usage")
	errSource = errors.New("source")
	errConfig = errors.New("configuration")
)

// kindError is an error with a kind for errors.Is. Its text does not repeat the
// kind.
type kindError struct {
	error
	kind error
}

func (k kindError) Unwrap() []error { return []error{k.error, k.kind} }

func usagef(format string, args ...any) error {
	return kindError{fmt.Errorf(format, args...), errUsage}
}

// sourceError marks err with errSource if it is a file system error of the source
// at path. Errors of the source and of the state directory differ only in the
// path.
func sourceError(err error, path string) error {
	pe, ok := errors.AsType[*fs.PathError](err)
	if !ok || pe.Path != path || errors.Is(err, chunk.ErrRead) || errors.Is(err, errSource) {
		return err
	}
	return kindError{fmt.Errorf("%s: %w", path, pe.Err), errSource}
}
