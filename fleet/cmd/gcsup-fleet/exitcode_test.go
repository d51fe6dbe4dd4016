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

// TestExitCodeOfNATS checks that the exit code is 75 if NATS is not ready.
func TestExitCodeOfNATS(t *testing.T) {
	for _, err := range []error{
		nats.ErrNoServers, nats.ErrTimeout, nats.ErrNoResponders, jetstream.ErrNoStreamResponse, os.ErrDeadlineExceeded, io.EOF,
		&jetstream.APIError{Code: 503, ErrorCode: 10008, Description: "JetStream system temporarily unavailable"},
	} {
		if code := exitCodeOf(fmt.Errorf("NATS: %w", err)); code != exit.Temporary {
			t.Errorf("%v: exit code %d, want %d", err, code, exit.Temporary)
		}
	}
	if code := exitCodeOf(&jetstream.APIError{Code: 500}); code != exit.IO {
		t.Errorf("an internal error of JetStream: exit code %d, want %d", code, exit.IO)
	}
}

// TestExitCodeOfUploads checks that an error that gcsup knows has the exit code of gcsup,
// even if it has another cause.
func TestExitCodeOfUploads(t *testing.T) {
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
	} {
		if got := exitCodeOf(c.err); got != c.want {
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
