package main

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"syscall"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"gcsup/fleet"
	"gcsup/fleet/natsserver"
	"gcsup/internal/cli/exitcode"
	"gcsup/internal/cli/failure"
	"gcsup/upload/errkind"
)

// errAuthTimeout equals the error of nats.Connect if the process did not run for seconds while
// it connected, or the server is overloaded. Package nats compares such errors by their text.
var errAuthTimeout = errors.New("nats: authentication timeout")

// exitCodeOf returns the exit code for an error: that of gcsup, or that of an error of
// the fleet or NATS. The first match counts.
func exitCodeOf(err error) int {
	if c := failure.Classify(err); c.Kind != errkind.LocalIO {
		return c.Code
	}
	for _, f := range []struct {
		is   error
		code int
	}{
		{natsserver.ErrStopped, exitcode.Temporary}, // whatever the cause is
		{fleet.ErrOptions, exitcode.Usage},
		{fs.ErrNotExist, exitcode.NoInput},
		{fleet.ErrAckWait, exitcode.Config},
		{fleet.ErrReplicas, exitcode.Config},
		{fleet.ErrStateKey, exitcode.Config},
		{fleet.ErrEndpoint, exitcode.Config},
		{fleet.ErrQueueLost, exitcode.Temporary},
		{fleet.ErrUnknownTotal, exitcode.Temporary},
		{fleet.ErrNoQueue, exitcode.Unavailable},
		{fleet.ErrFilesFailed, exitcode.Data},
		{errLocked, exitcode.Temporary},
		{errAbandoned, exitcode.Temporary},
		{fleet.ErrNameInUse, exitcode.Temporary},
		{fleet.ErrNoDeadLetter, exitcode.NoInput},
		{fleet.ErrDamagedLetter, exitcode.Data},
		{nats.ErrNoServers, exitcode.Temporary},
		{nats.ErrTimeout, exitcode.Temporary},
		{errAuthTimeout, exitcode.Temporary},
		{context.DeadlineExceeded, exitcode.Temporary},
		{nats.ErrNoResponders, exitcode.Temporary},
		{jetstream.ErrNoStreamResponse, exitcode.Temporary},
		{os.ErrDeadlineExceeded, exitcode.Temporary}, // of a connection to NATS
		{syscall.ECONNRESET, exitcode.Temporary},
		{io.EOF, exitcode.Temporary},
		{nats.ErrAuthorization, exitcode.Permission},
		{nats.ErrPermissionViolation, exitcode.Permission},
	} {
		if errors.Is(err, f.is) {
			return f.code
		}
	}
	if api, ok := errors.AsType[*jetstream.APIError](err); ok && api.Code == http.StatusServiceUnavailable {
		return exitcode.Temporary // the servers elect a leader
	}
	return exitcode.IO
}
