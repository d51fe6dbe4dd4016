package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"syscall"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"gcsup/fleet"
	"gcsup/session"
	"gcsup/upload/manifest"
	"gcsup/upload/tree"
)

// The exit codes are those of gcsup.
const (
	exitOK          = 0
	exitUsage       = 64
	exitData        = 65
	exitNoInput     = 66
	exitUnavailable = 69
	exitIO          = 74
	exitTemporary   = 75
	exitPermission  = 77
	exitConfig      = 78
	exitSignal      = 130
)

// exitCode is the error of a command that has already printed what went wrong.
type exitCode int

func (e exitCode) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// Kinds of errors that this package makes.
var (
	errUsage  = errors.New("usage")
	errSource = errors.New("source")
	errConfig = errors.New("configuration")
)

// kindError is an error with a kind for errors.Is. Its text does not repeat the kind.
type kindError struct {
	error
	kind error
}

func (k kindError) Unwrap() []error { return []error{k.error, k.kind} }

func usagef(format string, args ...any) error {
	return kindError{fmt.Errorf(format, args...), errUsage}
}

// exitCodeOf returns the exit code for an error. The first match counts.
func exitCodeOf(err error) int {
	for _, f := range []struct {
		is   error
		code int
	}{
		{errUsage, exitUsage},
		{tree.ErrUsage, exitUsage},
		{tree.ErrCollision, exitUsage},
		{fleet.ErrOptions, exitUsage},
		{errSource, exitNoInput},
		{fs.ErrNotExist, exitNoInput},
		{errConfig, exitConfig},
		{fleet.ErrAckWait, exitConfig},
		{fleet.ErrNoQueue, exitUnavailable},
		{fleet.ErrQueueLost, exitTemporary},
		{context.Canceled, exitTemporary},
		{errLocked, exitTemporary},
		{session.ErrInUse, exitTemporary},
		{manifest.ErrLocked, exitTemporary},
		{session.ErrRetriesExhausted, exitTemporary},
		{nats.ErrNoServers, exitTemporary},
		{nats.ErrTimeout, exitTemporary},
		{context.DeadlineExceeded, exitTemporary},
		{nats.ErrNoResponders, exitTemporary},
		{jetstream.ErrNoStreamResponse, exitTemporary},
		{os.ErrDeadlineExceeded, exitTemporary}, // of a connection to NATS
		{syscall.ECONNRESET, exitTemporary},
		{io.EOF, exitTemporary},
		{nats.ErrAuthorization, exitPermission},
		{nats.ErrPermissionViolation, exitPermission},
		{session.ErrNotFound, exitUnavailable},
		{session.ErrCredentials, exitPermission},
		{session.ErrPermission, exitPermission},
		{session.ErrInvalid, exitUsage},
		{manifest.ErrFormat, exitUsage},
		{manifest.ErrVersion, exitConfig},
	} {
		if errors.Is(err, f.is) {
			return f.code
		}
	}
	if api, ok := errors.AsType[*jetstream.APIError](err); ok && api.Code == http.StatusServiceUnavailable {
		return exitTemporary // the servers elect a leader
	}
	return exitIO
}
