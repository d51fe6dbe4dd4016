package exit

import (
	"errors"
	"fmt"

	"gcsup/internal/errkind"
)

// Kinds of errors that the commands make.
var (
	ErrUsage   = errors.New("usage")
	ErrSource  = errors.New("source")
	ErrConfig  = errors.New("configuration")
	ErrDiffers = errors.New("differs") // a file is not what its object is
	ErrBlocked = errors.New("blocked") // a file of an ordered outbox blocks all later ones
	ErrCommand = errors.New("command") // whose output is uploaded
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
	{ErrBlocked, "blocked"},
	{ErrCommand, "command_failed"},
}

// Kind is a kind of error with which the commands can end.
type Kind struct {
	Name string // in the JSON output
	Code int    // one of the exit codes
	Text string // what happened
}

// Kinds are the kinds of errors, in the order of the exit codes.
var Kinds = []Kind{
	{"usage", Usage, "the command line is wrong"},
	{"invalid", Usage, "a name is invalid, or the service rejects the request as invalid"},
	{"source_changed", Data, "the source changed since its upload started; no byte of it is sent"},
	{"checksum", Data, "the bytes at the service are not those of the source; the object does not exist"},
	{"unexpected_data", Data, "the service has bytes, or an object, that this upload did not send"},
	{"protocol", Data, "the service's answers contradict each other, or refuse an upload in progress"},
	{"options_differ", Data, "the saved upload was started with another value of a given option; it is kept"},
	{"corrupt_saved_upload", Data, "a saved upload is truncated or edited, or an import is not an export. cp of the same file sets it aside as ID.damaged for a week, and starts over"},
	{"incomplete", Data, "a spooled stream can never be completed: its process ended before the input did, the service lost bytes that are no longer on disk, or a file of the spool is damaged"},
	{"differs", Data, "verify: an object differs from its file or its record, does not exist, or has no file or record (--extra); or a line of --manifest is damaged"},
	{"blocked", Data, "outbox run --ordered: a file has an invalid name, or the service rejects it as invalid; it blocks all later files"},
	{errkind.NoInput, NoInput, "the source does not exist, cannot be opened or is not a file; standard input is closed"},
	{"no_files", NoInput, "sync --delete: the directory has no files, but there are objects; nothing is deleted"},
	{"no_saved_upload", NoInput, "there is no saved upload with that ID"},
	{"not_found", Unavailable, "no such bucket or service: the host name does not resolve, the certificate is not trusted, or another kind of server answers. After the session has started these are network failures, and are retried"},
	{"session_lost", Unavailable, "the service lost the session more than three times"},
	{"canceled", Unavailable, "another client canceled the session"},
	{"quota", Unavailable, "a daily quota is used up"},
	{"command_failed", Command, "cp gs://BUCKET/OBJECT -- COMMAND: the command could not be started, did not exit with 0, or was ended by a signal; no object was made"},
	{"precondition", Exists, "a precondition failed"},
	{"too_many_deletions", Exists, "sync --delete: more objects have no file than --max-delete allows; nothing is deleted"},
	{"outcome_unknown", Exists, "the reply to the request that makes the object was lost, and the object may be that of another writer; or an earlier run may have finished the upload, and the object cannot be read. Nothing is replaced. An upload with a session or in parts stays saved"},
	{"nothing_deleted", IO, "sync --delete: a file was not uploaded or a directory not read, so that nothing is deleted. The exit code is that of the file or directory that failed"},
	{errkind.LocalIO, IO, "a read of the source or of the state directory failed, or output could not be written"},
	{"interrupted", Temporary, "SIGINT, SIGTERM, or a SIGHUP that was not ignored at the start; run again to resume"},
	{"retries_exhausted", Temporary, "too many failures without progress; run again to resume"},
	{"in_use", Temporary, "another process is working on this upload"},
	{"credentials", Permission, "there are no credentials, they cannot be read, no token can be obtained with them, or the service does not accept them; or a proxy requires a password when the upload starts. The message names the cause"},
	{"permission", Permission, "the credentials do not permit this"},
	{"configuration", Config, "the endpoint or another setting is invalid, or the directory of --spool does not exist"},
	{"encryption_key", Config, "the saved upload was started with an encryption key, and no key was given"},
	{"state_key", Config, "the saved upload is not sealed with the key of --state-key-file, or is not sealed; it is not changed"},
	{"uri_mismatch", Config, "the saved upload belongs to another endpoint"},
	{"insecure_permissions", Config, "others can read or write the saved upload"},
	{"newer_version", Config, "a newer version saved the upload; it is not changed"},
}

// codes has the exit code of each kind.
var codes = func() map[string]int {
	m := map[string]int{}
	for _, k := range Kinds {
		m[k.Name] = k.Code
	}
	return m
}()

// Classify returns the class of an error. An error of a kind that the commands do not end
// with counts as local I/O.
func Classify(err error) Class {
	kind := ownKind(err)
	if kind == "" {
		kind = errkind.Of(err)
	}
	code, ok := codes[kind]
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
