package natsserver_test

import (
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"gcsup/fleet/internal/natsserver"
	"gcsup/fleet/internal/smalldisk"
)

// TestFullDisk fills the disk of a server. The server reports it, without the token.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	const token = "a-secret-token"
	disk := smalldisk.Mount(t, 16<<20)
	var mu sync.Mutex
	var texts []string
	server, err := natsserver.Start(natsserver.Options{Dir: filepath.Join(disk, "nats"), Port: -1, Token: token, Report: func(_ slog.Level, text string) {
		mu.Lock()
		defer mu.Unlock()
		texts = append(texts, text)
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	nc, err := nats.Connect(server.URL(), nats.Token(token))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "s", Subjects: []string{"s.>"}, Storage: jetstream.FileStorage}); err != nil {
		t.Fatal(err)
	}
	smalldisk.Fill(t, disk)
	for range 100 {
		if _, err := js.Publish(t.Context(), "s.x", make([]byte, 100_000), jetstream.WithRetryAttempts(0)); err != nil {
			break
		}
	}
	select {
	case err := <-server.Failed():
		if !errors.Is(err, natsserver.ErrDiskFull) {
			t.Errorf("error %v", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("the server does not report that its disk is full")
	}
	mu.Lock()
	defer mu.Unlock()
	if all := strings.Join(texts, "\n"); strings.Contains(all, token) {
		t.Errorf("a report has the token: %s", all)
	}
}
