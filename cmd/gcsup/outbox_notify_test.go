//go:build unix

package main

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"gcsup/fakegcs"
	"gcsup/internal/cli/screen"
	"gcsup/internal/require"
	"gcsup/internal/testprocess"
	"gcsup/upload/outbox"
)

// notifySocket returns the socket of a service manager, whose path is in NOTIFY_SOCKET.
func notifySocket(t *testing.T) (path string, conn *net.UnixConn) {
	t.Helper()
	dir, err := os.MkdirTemp("", "notify") // the path of a socket must be short
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	path = filepath.Join(dir, "socket")
	conn, err = net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	return path, conn
}

// received waits for a datagram with the line want, and returns its lines and those of the datagrams before it.
func received(t *testing.T, conn *net.UnixConn, want string) (lines []string) {
	t.Helper()
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(30*time.Second)))
	buf := make([]byte, 4096)
	for {
		n, err := conn.Read(buf)
		if err != nil {
			t.Fatalf("no %s after %q: %v", want, lines, err)
		}
		for line := range strings.SplitSeq(string(buf[:n]), "\n") {
			lines = append(lines, line)
			if line == want {
				return lines
			}
		}
	}
}

// TestOutboxUnderSystemd runs outbox run with the protocol of systemd.
func TestOutboxUnderSystemd(t *testing.T) {
	t.Parallel()
	srv := fakegcs.NewServer(t, &fakegcs.Options{CreateBuckets: true})
	socket, conn := notifySocket(t)
	dir := t.TempDir()
	cmd := exec.Command("gcsup", "outbox", "run", dir, "gs://demo/in", "--settle=0", "--state-dir="+filepath.Join(t.TempDir(), "state"))
	cmd.Env = append(os.Environ(), "STORAGE_EMULATOR_HOST="+srv.URL, "NOTIFY_SOCKET="+socket, "WATCHDOG_USEC=600000")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a"), []byte("content"), 0o600))
	run := testprocess.Start(t, cmd)
	if before := strings.Join(received(t, conn, "READY=1"), "\n"); strings.Contains(before, "STOPPING") {
		t.Errorf("before READY: %q", before)
	}
	for {
		lines := received(t, conn, "WATCHDOG=1")
		if strings.Contains(strings.Join(lines, "\n"), "STATUS=1 file uploaded; backlog: 0 files, 0 B") {
			break
		}
	}
	// A process that hangs sends no sign of life.
	run.Signal(syscall.SIGSTOP)
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(300*time.Millisecond)))
	if _, err := io.Copy(io.Discard, conn); !errors.Is(err, os.ErrDeadlineExceeded) { // what was sent before
		t.Fatal(err)
	}
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(time.Second)))
	if n, err := conn.Read(make([]byte, 100)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a stopped process sent %d bytes, %v", n, err)
	}
	run.Signal(syscall.SIGCONT)
	received(t, conn, "WATCHDOG=1")
	began := time.Now()
	run.Signal(syscall.SIGTERM)
	received(t, conn, "STOPPING=1")
	if code := run.Wait(); code != 0 {
		t.Error(run.Output())
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it ended after %v", took)
	}
}

// TestStoppingAtOnce checks that systemd is told that the service stops, even if that takes no time.
func TestStoppingAtOnce(t *testing.T) {
	socket, conn := notifySocket(t)
	t.Setenv("NOTIFY_SOCKET", socket)
	n := &notifier{console: screen.NewConsole(io.Discard, false)}
	for range 20 {
		ctx, cancel := context.WithCancel(t.Context())
		stop := n.start(ctx, func() outbox.Status { return outbox.Status{} })
		cancel()
		stop()
		require.NoError(t, conn.SetReadDeadline(time.Now().Add(30*time.Second)))
		if _, err := conn.Read(make([]byte, 100)); err != nil {
			t.Fatalf("no STOPPING=1: %v", err)
		}
	}
}

// TestNoSignOfLife checks that there is no sign of life while the outbox hangs, although the process runs.
func TestNoSignOfLife(t *testing.T) {
	socket, conn := notifySocket(t)
	t.Setenv("NOTIFY_SOCKET", socket)
	n := &notifier{console: screen.NewConsole(io.Discard, false), watchdog: 30 * time.Millisecond}
	s := outbox.Status{Turn: time.Now().Add(-time.Minute)}
	stop := n.start(context.Background(), func() outbox.Status { return s })
	lines := received(t, conn, "STATUS=0 files uploaded; backlog: 0 files, 0 B")
	stop()
	if strings.Contains(strings.Join(lines, "\n"), "WATCHDOG") {
		t.Errorf("%q", lines)
	}
	stop = n.start(context.Background(), func() outbox.Status { return outbox.Status{Turn: time.Now()} })
	received(t, conn, "WATCHDOG=1")
	stop()
}
