// Package errkind names the kinds of errors of the library. The JSON lines of gcsup, the
// telemetry of package upload/otel, and the records and logs of gcsup-fleet have the same names.
//
// The name of a kind is that of the sentinel error, unless several of them mean the same to a user:
// [session.ErrSessionLost] is session_lost. These kinds differ:
//
//	interrupted           [context.Canceled]
//	in_use                [state.ErrInUse], [manifest.ErrLocked]
//	newer_version         [state.ErrVersion], [manifest.ErrVersion]
//	no_saved_upload       [state.ErrNotFound]
//	corrupt_saved_upload  [state.ErrCorrupt]
//	state_key             [bucketstore.ErrSealed]
//	retries_exhausted     [session.ErrRetriesExhausted], [bucketstore.ErrSlow]
//	usage                 [tree.ErrUsage], [tree.ErrCollision], and the errors of package manifest for a wrong file or call
//	no_input              [chunk.ErrOpen], [chunk.ErrNotRegular], [upload.ErrSourceNeeded], and those of package tree about one file
//	nothing_deleted       [mirror.ErrIncomplete]
//	local_io              [chunk.ErrRead], [tree.ErrSort], and every error without a sentinel
package errkind

import (
	"context"
	"errors"
	"slices"

	"gcsup/backoff"
	"gcsup/chunk"
	"gcsup/session"
	"gcsup/session/state"
	"gcsup/session/state/bucketstore"
	"gcsup/upload"
	"gcsup/upload/manifest"
	"gcsup/upload/mirror"
	"gcsup/upload/tree"
)

// These kinds have no sentinel error of their own.
const (
	LocalIO = "local_io" // an error of the operating system, or any other one
	NoInput = "no_input" // a source cannot be opened, or is not a file
)

// kinds is the table of kinds. The first match counts: an interruption before the failure that
// preceded it, and causes of other errors last.
var kinds = []struct {
	sentinel error
	kind     string
}{
	{tree.ErrUsage, "usage"},
	{tree.ErrCollision, "usage"},
	{tree.ErrSymlink, NoInput},
	{tree.ErrNotRegular, NoInput},
	{tree.ErrName, NoInput},
	{tree.ErrLeftOut, NoInput},
	{mirror.ErrTooManyDeletions, "too_many_deletions"},
	{mirror.ErrNoFiles, "no_files"},
	{mirror.ErrIncomplete, "nothing_deleted"},
	{tree.ErrSort, LocalIO},
	{context.Canceled, "interrupted"},
	{upload.ErrPaused, "paused"},
	{state.ErrInUse, "in_use"},
	{manifest.ErrLocked, "in_use"},
	{manifest.ErrVersion, "newer_version"},
	{manifest.ErrFormat, "usage"},
	{manifest.ErrUnsorted, "usage"},
	{manifest.ErrClosed, "usage"},
	{bucketstore.ErrSlow, "retries_exhausted"},
	{session.ErrRetriesExhausted, "retries_exhausted"},
	{backoff.ErrPermanent, "permanent"},
	{session.ErrSourceChanged, "source_changed"},
	{upload.ErrIncomplete, "incomplete"}, // wraps the reason
	{session.ErrChecksum, "checksum"},
	{session.ErrUnexpectedData, "unexpected_data"},
	{session.ErrProtocol, "protocol"},
	{state.ErrOptionsDiffer, "options_differ"},
	{session.ErrEncryptionKey, "encryption_key"},
	{bucketstore.ErrSealed, "state_key"},
	{state.ErrCorrupt, "corrupt_saved_upload"},
	{state.ErrVersion, "newer_version"},
	{chunk.ErrNotRegular, NoInput},
	{upload.ErrSourceNeeded, NoInput},
	{upload.ErrTruncated, "truncated"},
	{state.ErrNotFound, "no_saved_upload"},
	{session.ErrNotFound, "not_found"},
	{session.ErrSessionLost, "session_lost"},
	{session.ErrCanceled, "canceled"},
	{session.ErrQuota, "quota"},
	{session.ErrOutcomeUnknown, "outcome_unknown"},
	{session.ErrPrecondition, "precondition"},
	{session.ErrCredentials, "credentials"},
	{session.ErrPermission, "permission"},
	{state.ErrInsecurePermissions, "insecure_permissions"},
	{session.ErrURIMismatch, "uri_mismatch"},
	{session.ErrInvalid, "invalid"},
	{chunk.ErrRead, LocalIO},
	{chunk.ErrOpen, NoInput},
	{upload.ErrNotTried, "not_tried"},
	{session.ErrStalled, "stalled"},
	{context.DeadlineExceeded, "deadline_exceeded"},
}

// Of returns the kind of an error.
func Of(err error) string {
	kind, _ := match(err)
	return kind
}

// Kinds returns all kinds that Of can return, sorted.
func Kinds() []string {
	all := []string{LocalIO}
	for _, k := range kinds {
		all = append(all, k.kind)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Sentinel returns the sentinel error that decides the kind of err, or nil if there is none.
func Sentinel(err error) error {
	_, sentinel := match(err)
	return sentinel
}

func match(err error) (kind string, sentinel error) {
	for _, k := range kinds {
		if errors.Is(err, k.sentinel) {
			return k.kind, k.sentinel
		}
	}
	return LocalIO, nil
}
