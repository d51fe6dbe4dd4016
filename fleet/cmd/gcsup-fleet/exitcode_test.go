package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"gcsup/internal/cli/exit"
	"gcsup/internal/require"
	"gcsup/session"
	"gcsup/session/state/bucketstore"
)

// TestExitCode checks that the exit code is 75 if NATS is not ready, and that an error that gcsup knows has the exit code
// of gcsup, even if it has another cause.
func TestExitCode(t *testing.T) {
	noKey := &fs.PathError{Op: "open", Path: "key.json", Err: syscall.ENOENT}
	for _, c := range []struct {
		err  error
		want int
	}{
		{noKey, exit.NoInput},
		{&session.Error{Kind: session.ErrCredentials, Err: noKey}, exit.Permission},
		{&session.Error{Kind: session.ErrNotFound, Err: io.EOF}, exit.Unavailable},
		{bucketstore.ErrSealed, exit.Config},
		{session.ErrPrecondition, exit.Exists},
		{nats.ErrNoServers, exit.Temporary},
		{nats.ErrTimeout, exit.Temporary},
		{nats.ErrNoResponders, exit.Temporary},
		{jetstream.ErrNoStreamResponse, exit.Temporary},
		{os.ErrDeadlineExceeded, exit.Temporary},
		{io.EOF, exit.Temporary},
		{&jetstream.APIError{Code: 503, ErrorCode: 10008, Description: "JetStream system temporarily unavailable"}, exit.Temporary},
		{&jetstream.APIError{Code: 500}, exit.IO},
	} {
		if got := exitCodeOf(fmt.Errorf("x: %w", c.err)); got != c.want {
			t.Errorf("%v: exit code %d, want %d", c.err, got, c.want)
		}
	}
}

// TestAuthTimeout checks the exit code of a process whose connection a server gave up.
func TestAuthTimeout(t *testing.T) {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer server.Close()
	go func() {
		conn, err := server.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "INFO {}\r\n-ERR 'Authentication Timeout'\r\n")
		_, _ = io.Copy(io.Discard, conn)
	}()
	_, err = nats.Connect("nats://" + server.Addr().String())
	if !errors.Is(err, errAuthTimeout) || exitCodeOf(err) != exit.Temporary {
		t.Errorf("exit code %d: %v", exitCodeOf(err), err)
	}
}
