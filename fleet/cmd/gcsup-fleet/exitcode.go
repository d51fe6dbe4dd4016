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

	"gcsup/fleet/internal/fleet"
	"gcsup/fleet/internal/natsserver"
	"gcsup/internal/cli/exit"
	"gcsup/internal/errkind"
)

// errAuthTimeout equals the error of nats.Connect if the process did not run for seconds while
// it connected, or the server is overloaded. Package nats compares such errors by their text.
var errAuthTimeout = errors.New("nats: authentication timeout")

// exitCodeOf returns the exit code for an error: that of gcsup, or that of an error of
// the fleet or NATS. The first match counts.
func exitCodeOf(err error) int {
	if c := exit.Classify(err); c.Kind != errkind.LocalIO {
		return c.Code
	}
	for _, f := range []struct {
		is   error
		code int
	}{
		{natsserver.ErrDiskFull, exit.IO},
		{fleet.ErrOptions, exit.Usage},
		{fs.ErrNotExist, exit.NoInput},
		{fleet.ErrAckWait, exit.Config},
		{fleet.ErrReplicas, exit.Config},
		{fleet.ErrStateKey, exit.Config},
		{fleet.ErrQueueLost, exit.Temporary},
		{fleet.ErrUnknownTotal, exit.Temporary},
		{fleet.ErrNoQueue, exit.Unavailable},
		{fleet.ErrFilesFailed, exit.Data},
		{errLocked, exit.Temporary},
		{errAbandoned, exit.Temporary},
		{fleet.ErrNoDeadLetter, exit.NoInput},
		{fleet.ErrDamagedLetter, exit.Data},
		{nats.ErrNoServers, exit.Temporary},
		{nats.ErrTimeout, exit.Temporary},
		{errAuthTimeout, exit.Temporary},
		{context.DeadlineExceeded, exit.Temporary},
		{nats.ErrNoResponders, exit.Temporary},
		{jetstream.ErrNoStreamResponse, exit.Temporary},
		{os.ErrDeadlineExceeded, exit.Temporary}, // of a connection to NATS
		{syscall.ECONNRESET, exit.Temporary},
		{io.EOF, exit.Temporary},
		{nats.ErrAuthorization, exit.Permission},
		{nats.ErrPermissionViolation, exit.Permission},
	} {
		if errors.Is(err, f.is) {
			return f.code
		}
	}
	if api, ok := errors.AsType[*jetstream.APIError](err); ok && api.Code == http.StatusServiceUnavailable {
		return exit.Temporary // the servers elect a leader
	}
	return exit.IO
}
