package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"

	"gcsup/fleet/internal/natsserver"
	"gcsup/internal/cli/exit"
)

// TestServerStartsLater checks that a command waits for a server that starts later.
func TestServerStartsLater(t *testing.T) {
	t.Parallel()
	port := unusedPort(t)
	f := &natsFlags{url: fmt.Sprintf("nats://secret@127.0.0.1:%d", port), fleet: "default", replicas: 1, creates: true}
	messages := &onMessage{first: func() {
		server, err := natsserver.Start(natsserver.Options{Dir: t.TempDir(), Port: port, Token: "secret"})
		if err != nil {
			t.Error(err)
			return
		}
		t.Cleanup(server.Close)
	}}
	l, err := f.open(t.Context(), stdio{err: messages})
	if err != nil {
		t.Fatal(err)
	}
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
	server, err := natsserver.Start(natsserver.Options{Dir: t.TempDir(), Port: -1, Token: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	for url, want := range map[string]int{
		server.URL():             exit.Permission,
		"nats://:4222/\x7f":      exit.Usage,
		"nats://host.invalid:42": exit.IO,
	} {
		messages := &onMessage{}
		f := &natsFlags{url: url, fleet: "default"}
		if _, err := f.open(t.Context(), stdio{err: messages}); exitCodeOf(err) != want || messages.String() != "" {
			t.Errorf("%q: error %v (exit code %d), messages %q, want exit code %d and no message", url, err, exitCodeOf(err), messages, want)
		}
	}
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
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}
