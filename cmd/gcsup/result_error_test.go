package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"strings"
	"syscall"
	"testing"

	"gcsup/chunk"
	"gcsup/internal/cli/exit"
	"gcsup/session"
	"gcsup/upload/gcs"
)

// TestSourceErrors checks which file system errors are those of the source.
func TestSourceErrors(t *testing.T) {
	missing := &fs.PathError{Op: "open", Path: "a.bin", Err: syscall.ENOENT}
	full := &fs.PathError{Op: "write", Path: "state/x.tmp", Err: syscall.ENOSPC}
	for _, c := range []struct {
		err  error
		kind string
	}{
		{missing, "no_input"},
		{fmt.Errorf("open: %w", missing), "no_input"},
		{full, "local_io"},
		{fmt.Errorf("%w: %w", chunk.ErrRead, missing), "local_io"},
	} {
		if got := exit.Classify(sourceError(c.err, "a.bin")).Kind; got != c.kind {
			t.Errorf("sourceError(%v) is of kind %s, want %s", c.err, got, c.kind)
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

// TestHintAboutTokenService checks that the hint knows the error of package gcs,
// which package exit does not import.
func TestHintAboutTokenService(t *testing.T) {
	ts := &gcs.TokenServiceError{Host: "https://tokens", Err: syscall.ECONNREFUSED}
	err := withHint(&session.Error{Op: session.OpStart, Kind: session.ErrRetriesExhausted, Err: ts}, "")
	if want := "access tokens come from https://tokens"; !strings.Contains(err.Error(), want) {
		t.Errorf("got %q, want a hint with %q", err, want)
	}
}

// TestHintAboutMutualTLSEndpoint checks that the hint knows the endpoint of package gcs.
func TestHintAboutMutualTLSEndpoint(t *testing.T) {
	failed := &session.Error{Op: session.OpStart, Kind: session.ErrNotFound, Err: &net.DNSError{Err: "no such host", Name: "storage.mtls.googleapis.com"}}
	err := withHint(failed, gcs.MutualTLSEndpoint)
	if want := "set GOOGLE_API_USE_MTLS_ENDPOINT=never"; !strings.Contains(err.Error(), want) {
		t.Errorf("got %q, want a hint with %q", err, want)
	}
}
