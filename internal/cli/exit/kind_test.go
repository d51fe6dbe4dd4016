package exit_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"gcsup/backoff"
	"gcsup/chunk"
	"gcsup/internal/cli/exit"
	"gcsup/session"
	"gcsup/session/state"
	"gcsup/session/state/bucketstore"
	"gcsup/upload"
)

// TestClassify checks the exit code and the kind of each error.
func TestClassify(t *testing.T) {
	for _, c := range []struct {
		err  error
		code int
		kind string
	}{
		{exit.Usagef("no"), 64, "usage"},
		{session.ErrInvalid, 64, "invalid"},
		{session.ErrSourceChanged, 65, "source_changed"},
		{session.ErrChecksum, 65, "checksum"},
		{session.ErrUnexpectedData, 65, "unexpected_data"},
		{session.ErrProtocol, 65, "protocol"},
		{chunk.ErrNotRegular, 66, "no_input"},
		{upload.ErrSourceNeeded, 66, "no_input"},
		{state.ErrNotFound, 66, "no_saved_upload"},
		{session.ErrNotFound, 69, "not_found"},
		{session.ErrSessionLost, 69, "session_lost"},
		{session.ErrCanceled, 69, "canceled"},
		{session.ErrQuota, 69, "quota"},
		{session.ErrPrecondition, 73, "precondition"},
		{state.ErrCorrupt, 65, "corrupt_saved_upload"},
		{errors.New("unheard of"), 74, "local_io"},
		{session.ErrRetriesExhausted, 75, "retries_exhausted"},
		{bucketstore.ErrSlow, 75, "retries_exhausted"},
		{state.ErrInUse, 75, "in_use"},
		{context.Canceled, 75, "interrupted"},
		{session.ErrCredentials, 77, "credentials"},
		{session.ErrPermission, 77, "permission"},
		{state.ErrInsecurePermissions, 78, "insecure_permissions"},
		{session.ErrURIMismatch, 78, "uri_mismatch"},
		{state.ErrVersion, 78, "newer_version"},
		{fmt.Errorf("saved uploads: %w", bucketstore.ErrSealed), 78, "state_key"},
		{&session.Error{Kind: session.ErrCredentials, Err: &backoff.ProxyError{Code: 407}}, 77, "credentials"},
		{exit.WithKind(errors.New("endpoint"), exit.ErrConfig), 78, "configuration"},
		// The interruption counts, not an earlier failure.
		{fmt.Errorf("%w (before that: %w)", context.Canceled, session.ErrCredentials), 75, "interrupted"},
		{&session.Error{Kind: session.ErrRetriesExhausted, Err: session.ErrStalled}, 75, "retries_exhausted"},
	} {
		for _, err := range []error{c.err, fmt.Errorf("while testing: %w", c.err)} {
			if got := exit.Classify(err); got.Code != c.code || got.Kind != c.kind {
				t.Errorf("Classify(%v) = %d %s, want %d %s", err, got.Code, got.Kind, c.code, c.kind)
			}
		}
	}
}

// TestKinds checks that the kinds are in the order of their exit codes, and that each code is described.
func TestKinds(t *testing.T) {
	described := map[int]bool{}
	for _, m := range exit.Meanings {
		described[m.Code] = true
	}
	last, seen := 0, map[string]bool{}
	for _, k := range exit.Kinds {
		if k.Code < last || seen[k.Name] || k.Text == "" || !described[k.Code] {
			t.Errorf("%+v: out of order, twice, or not described", k)
		}
		last, seen[k.Name] = k.Code, true
	}
}
