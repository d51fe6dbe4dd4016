package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"gcsup/fleet/internal/natsserver"
	"gcsup/internal/cli/exit"
	"gcsup/internal/require"
)

// TestServerStartsLater checks that a command waits for a server that starts later.
func TestServerStartsLater(t *testing.T) {
	t.Parallel()
	port := unusedPort(t)
	f := &natsFlags{url: fmt.Sprintf("nats://secret@127.0.0.1:%d", port), fleet: "default", replicas: 1, creates: true}
	messages := &onMessage{first: func() {
		started, err := natsserver.Start(natsserver.Options{Dir: t.TempDir(), Port: port, Token: "secret"})
		if err != nil {
			t.Error(err)
			return
		}
		t.Cleanup(started.Close)
	}}
	l, err := f.open(t.Context(), stdio{err: messages})
	require.NoError(t, err)
	l.close()
	if text := messages.String(); strings.Count(text, "no servers available") != 1 || !strings.Contains(text, "next attempt in") {
		t.Errorf("messages: %q, want one about the server", text)
	}
}

// TestOpenCanceled checks that a canceled command that waits for its server ends at once.
func TestOpenCanceled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("stop")
	f := &natsFlags{url: fmt.Sprintf("nats://127.0.0.1:%d", unusedPort(t)), fleet: "default"}
	if _, err := f.open(ctx, stdio{err: &onMessage{first: func() { cancel(stop) }}}); !errors.Is(err, stop) {
		t.Errorf("error %v, want the cause", err)
	}
}

// TestOpenPermanent checks that permanent errors are not retried.
func TestOpenPermanent(t *testing.T) {
	t.Parallel()
	started, err := natsserver.Start(natsserver.Options{Dir: t.TempDir(), Port: -1, Token: "secret"})
	require.NoError(t, err)
	t.Cleanup(started.Close)
	for url, want := range map[string]int{
		started.URL():       exit.Permission,
		"nats://:4222/\x7f": exit.Usage,
	} {
		messages := &onMessage{}
		f := &natsFlags{url: url, fleet: "default"}
		if _, err := f.open(t.Context(), stdio{err: messages}); exitCodeOf(err) != want || messages.String() != "" {
			t.Errorf("%q: error %v (exit code %d), messages %q, want exit code %d and no message", url, err, exitCodeOf(err), messages, want)
		}
	}
}

// TestNameNotResolved checks that a command waits for the name of a server, as after a start of the machine.
func TestNameNotResolved(t *testing.T) {
	defer func(before time.Duration) { openFor = before }(openFor)
	openFor = time.Second
	messages := &onMessage{}
	f := &natsFlags{url: "nats://host.invalid:4222", fleet: "default"}
	if _, err := f.open(t.Context(), stdio{err: messages}); exitCodeOf(err) != exit.Temporary || strings.Count(messages.String(), "host.invalid") < 2 {
		t.Errorf("error %v (exit code %d), messages %q, want exit code %d after some attempts", err, exitCodeOf(err), messages, exit.Temporary)
	}
}

// TestCertificates checks the exit code of a client whose certificate is missing or rejected, or which does not know the
// authority of the server.
func TestCertificates(t *testing.T) {
	t.Parallel()
	certs, others := t.TempDir(), t.TempDir()
	for _, dir := range []string{certs, others} {
		if out, err := exec.Command("sh", "../../deploy/certs.sh", dir, "IP:127.0.0.1").CombinedOutput(); err != nil {
			t.Fatalf("certs.sh: %v\n%s", err, out)
		}
	}
	config, err := server.GenTLSConfig(&server.TLSConfigOpts{CertFile: certs + "/server.crt", KeyFile: certs + "/server.key", CaFile: certs + "/ca.crt", Verify: true})
	require.NoError(t, err)
	port := unusedPort(t)
	s := serveNATS(t, port, &server.Options{TLS: true, TLSVerify: true, TLSConfig: config, TLSTimeout: 10})
	if !s.ReadyForConnections(time.Minute) {
		t.Fatal("the server is not ready")
	}
	for name, c := range map[string]struct {
		ca, client string
		want       int
	}{
		"right":             {certs, certs + "/worker", exit.Unavailable}, // there is no fleet
		"unknown authority": {others, certs + "/worker", exit.Config},
		"no certificate":    {certs, "", exit.Config},
		"another authority": {certs, others + "/worker", exit.Config},
	} {
		args := []string{"status", "--nats", fmt.Sprintf("tls://127.0.0.1:%d", port), "--nats-ca", c.ca + "/ca.crt"}
		if c.client != "" {
			args = append(args, "--nats-cert", c.client+".crt", "--nats-key", c.client+".key")
		}
		if code, _, messages := here(t, args...); code != c.want {
			t.Errorf("%s: exit code %d, want %d: %s", name, code, c.want, messages)
		}
	}
}

// serveNATS starts a NATS server on a port.
func serveNATS(t *testing.T, port int, opts *server.Options) *server.Server {
	t.Helper()
	opts.Host, opts.Port, opts.JetStream, opts.StoreDir, opts.NoSigs, opts.NoLog = "127.0.0.1", port, true, t.TempDir(), true, true
	s, err := server.NewServer(opts)
	require.NoError(t, err)
	go s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	return s
}

// here runs a command line in this process.
func here(t *testing.T, args ...string) (code int, out, messages string) {
	var stdout, stderr bytes.Buffer
	code = execute(t.Context(), args, stdio{&stdout, &stderr})
	return code, stdout.String(), stderr.String()
}

// onMessage collects messages, and calls first at the first one.
type onMessage struct {
	bytes.Buffer
	once  sync.Once
	first func()
}

func (m *onMessage) Write(p []byte) (int, error) {
	if m.first != nil {
		m.once.Do(m.first)
	}
	return m.Buffer.Write(p)
}

// unusedPort returns a port on which nothing listens.
func unusedPort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}
