package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"testing"

	"gcsup/backoff"
	"gcsup/chunk"
	"gcsup/session"
	"gcsup/session/bucketstore"
)

// TestExitCodes checks the exit code and the kind of each error.
func TestExitCodes(t *testing.T) {
	missing := &fs.PathError{Op: "open", Path: "a.bin", Err: syscall.ENOENT}
	full := &fs.PathError{Op: "write", Path: "state/x.tmp", Err: syscall.ENOSPC}
	for _, c := range []struct {
		err  error
		code int
		kind string
	}{
		{usagef("no"), 64, "usage"},
		{session.ErrInvalid, 64, "invalid"},
		{session.ErrSourceChanged, 65, "source_changed"},
		{session.ErrChecksum, 65, "checksum"},
		{session.ErrUnexpectedData, 65, "foreign_writer"},
		{session.ErrProtocol, 65, "contradiction"},
		{sourceError(missing, "a.bin"), 66, "no_input"},
		{sourceError(fmt.Errorf("open: %w", missing), "a.bin"), 66, "no_input"},
		{chunk.ErrNotRegular, 66, "no_input"},
		{session.ErrNoToken, 66, "no_saved_upload"},
		{session.ErrNotFound, 69, "not_found"},
		{session.ErrSessionLost, 69, "session_gone"},
		{session.ErrCanceled, 69, "cancelled"},
		{session.ErrQuota, 69, "quota"},
		{session.ErrPrecondition, 73, "precondition"},
		{sourceError(full, "a.bin"), 74, "local_io"},
		{sourceError(fmt.Errorf("%w: %w", chunk.ErrRead, missing), "a.bin"), 74, "local_io"},
		{session.ErrCorruptToken, 65, "damaged"},
		{errors.New("unheard of"), 74, "local_io"},
		{session.ErrRetriesExhausted, 75, "retries_exhausted"},
		{session.ErrInUse, 75, "in_use"},
		{context.Canceled, 75, "interrupted"},
		{session.ErrCredentials, 77, "credentials"},
		{session.ErrPermission, 77, "permission"},
		{session.ErrInsecurePermissions, 78, "unsafe_state"},
		{session.ErrURIMismatch, 78, "endpoint"},
		{session.ErrTokenVersion, 78, "newer_version"},
		{fmt.Errorf("saved uploads: %w", bucketstore.ErrSealed), 78, "state_key"},
		{&session.Error{Kind: session.ErrCredentials, Err: &backoff.ProxyError{Code: 407}}, 77, "credentials"},
		{kindError{errors.New("endpoint"), errConfig}, 78, "configuration"},
		// The interruption counts, not an earlier failure.
		{fmt.Errorf("%w (before that: %w)", context.Canceled, session.ErrCredentials), 75, "interrupted"},
		{&session.Error{Kind: session.ErrRetriesExhausted, Err: session.ErrStalled}, 75, "retries_exhausted"},
	} {
		for _, err := range []error{c.err, fmt.Errorf("while testing: %w", c.err)} {
			if f := classify(err); f.code != c.code || f.kind != c.kind {
				t.Errorf("classify(%v) = %d %s, want %d %s", err, f.code, f.kind, c.code, c.kind)
			}
		}
	}
}

// TestSourceErrorNamesThePathOnce checks that the message has the path once.
func TestSourceErrorNamesThePathOnce(t *testing.T) {
	err := sourceError(&fs.PathError{Op: "stat", Path: "a.bin", Err: syscall.ENOENT}, "a.bin")
	if got, want := err.Error(), "a.bin: no such file or directory"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v does not wrap fs.ErrNotExist", err)
	}
}
