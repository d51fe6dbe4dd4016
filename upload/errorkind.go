package upload

import (
	"context"
	"errors"
	"slices"

	"gcsup/backoff"
	"gcsup/chunk"
	"gcsup/session"
	"gcsup/session/state"
	"gcsup/session/state/bucketstore"
)

// The kind of errors that no sentinel error names.
const kindLocalIO = "local_io"

// errorKinds is the table of [ErrorKind]. The first match counts: an interruption before the failure that
// preceded it, and causes of other errors last.
var errorKinds = []struct {
	sentinel error
	kind     string
}{
	{context.Canceled, "interrupted"},
	{ErrPaused, "paused"},
	{state.ErrInUse, "in_use"},
	{bucketstore.ErrSlow, "retries_exhausted"},
	{session.ErrRetriesExhausted, "retries_exhausted"},
	{backoff.ErrPermanent, "permanent"},
	{session.ErrSourceChanged, "source_changed"},
	{ErrIncomplete, "incomplete"}, // wraps the reason
	{session.ErrChecksum, "checksum"},
	{session.ErrUnexpectedData, "unexpected_data"},
	{session.ErrProtocol, "protocol"},
	{state.ErrOptionsDiffer, "options_differ"},
	{session.ErrEncryptionKey, "encryption_key"},
	{bucketstore.ErrSealed, "state_key"},
	{state.ErrCorrupt, "corrupt_saved_upload"},
	{state.ErrVersion, "newer_version"},
	{chunk.ErrNotRegular, "no_input"},
	{ErrSourceNeeded, "no_input"},
	{ErrTruncated, "truncated"},
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
	{chunk.ErrRead, kindLocalIO},
	{chunk.ErrOpen, "no_input"},
	{ErrNotTried, "not_tried"},
	{session.ErrStalled, "stalled"},
	{context.DeadlineExceeded, "deadline_exceeded"},
}

// ErrorKind returns one word for the cause of an error, as a label of metrics and logs. It is the name of the
// sentinel error: [session.ErrSessionLost] is session_lost. The JSON lines of the command have the same
// words. These words stand for several errors, or differ from the name:
//
//	interrupted           [context.Canceled]
//	in_use                [state.ErrInUse]
//	newer_version         [state.ErrVersion]
//	no_saved_upload       [state.ErrNotFound]
//	corrupt_saved_upload  [state.ErrCorrupt]
//	state_key             [bucketstore.ErrSealed]
//	retries_exhausted     [session.ErrRetriesExhausted], [bucketstore.ErrSlow]
//	no_input              [chunk.ErrOpen], [chunk.ErrNotRegular], [ErrSourceNeeded]
//	local_io              [chunk.ErrRead], and every error without a sentinel
func ErrorKind(err error) string {
	for _, k := range errorKinds {
		if errors.Is(err, k.sentinel) {
			return k.kind
		}
	}
	return kindLocalIO
}

// ErrorKinds returns all results of [ErrorKind], sorted.
func ErrorKinds() []string {
	all := []string{kindLocalIO}
	for _, k := range errorKinds {
		all = append(all, k.kind)
	}
	slices.Sort(all)
	return slices.Compact(all)
}
