package otel

import (
	"context"
	"errors"
	"io/fs"
	"strconv"
	"strings"

	"gcsup/chunk"
	"gcsup/session"
	"gcsup/session/state"
	"gcsup/upload"
)

// sentinels are the errors that error.type distinguishes. The first match counts.
var sentinels = []error{
	context.Canceled, context.DeadlineExceeded, upload.ErrPaused, upload.ErrSourceNeeded, upload.ErrNotTried, upload.ErrTruncated,
	session.ErrRetriesExhausted, upload.ErrPermanent, session.ErrInvalid, session.ErrCredentials, session.ErrPermission, session.ErrNotFound, session.ErrQuota,
	session.ErrPrecondition, session.ErrOutcomeUnknown, session.ErrSessionLost, session.ErrCanceled, session.ErrChecksum,
	session.ErrUnexpectedData, session.ErrProtocol, session.ErrURIMismatch, session.ErrSourceChanged, state.ErrNoToken,
	state.ErrCorruptToken, state.ErrTokenVersion, state.ErrInsecurePermissions, state.ErrOptionsDiffer, session.ErrEncryptionKey,
	state.ErrInUse, chunk.ErrRead, chunk.ErrNotRegular, fs.ErrNotExist, fs.ErrPermission,
}

// errorType returns the error.type of an error: the text of its sentinel with
// underscores, because the text of the error itself has too many values.
func errorType(err error) string {
	for _, sentinel := range sentinels {
		if errors.Is(err, sentinel) {
			return nameOf(sentinel)
		}
	}
	return "_OTHER"
}

func nameOf(sentinel error) string { return strings.ReplaceAll(sentinel.Error(), " ", "_") }

func statusText(status int) string { return strconv.Itoa(status) }
