package natsserver_test

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"gcsup/fleet/internal/natsserver"
	"gcsup/fleet/internal/smalldisk"
)

// token is the secret of the servers of these tests.
const token = "a-secret-token"

// reports collects what a server reports.
type reports struct {
	mu    sync.Mutex
	texts []string
}

func (r *reports) add(_ slog.Level, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.texts = append(r.texts, text)
}

func (r *reports) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.texts, "\n")
}

// await waits for a text.
func (r *reports) await(t *testing.T, text string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !strings.Contains(r.String(), text); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("no report of %q:\n%s", text, r)
		}
	}
}

// full is a server with a full disk and a stream that has noticed it.
type full struct {
	server  *natsserver.Server
	reports *reports
	dir     string
	free    func()
	kept    int // messages that were acknowledged
}

func newFull(t *testing.T) *full {
	t.Helper()
	disk := smalldisk.Mount(t, 16<<20)
	f := &full{reports: &reports{}, dir: filepath.Join(disk, "nats")}
	var err error
	if f.server, err = natsserver.Start(natsserver.Options{Dir: f.dir, Port: -1, Token: token, Report: f.reports.add}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.server.Close)
	js := f.open(t, f.connect(t))
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "s", Subjects: []string{"s.>"}, Storage: jetstream.FileStorage}); err != nil {
		t.Fatal(err)
	}
	f.publish(t, js)
	f.free = smalldisk.Fill(t, disk)
	for range 100 {
		if _, err := js.PublishMsg(t.Context(), message(f.kept), jetstream.WithRetryAttempts(0)); err != nil {
			break
		}
		f.kept++
		if strings.Contains(f.reports.String(), "no space left on device") {
			break
		}
	}
	f.reports.await(t, "the queue waits, because the disk of "+f.dir+" is full: free 4 MiB or more: ")
	return f
}

// connect connects to the port of the server.
func (f *full) connect(t *testing.T) *nats.Conn {
	t.Helper()
	nc, err := nats.Connect(f.server.URL(), nats.Token(token), nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}

func (f *full) open(t *testing.T, nc *nats.Conn) jetstream.JetStream {
	t.Helper()
	js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(5*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	return js
}

func message(n int) *nats.Msg {
	return &nats.Msg{Subject: fmt.Sprintf("s.%d", n), Data: make([]byte, 100_000)}
}

func (f *full) publish(t *testing.T, js jetstream.JetStream) {
	t.Helper()
	if _, err := js.PublishMsg(t.Context(), message(f.kept)); err != nil {
		t.Errorf("message %d: %v", f.kept, err)
		return
	}
	f.kept++
}

// TestFullDisk fills the disk of a server and frees it. The server reports it, and accepts messages again
// with the same address. No message that it acknowledged is lost.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	f := newFull(t)
	nc, inProcess := f.connect(t), f.inProcess(t)
	f.free()
	f.reports.await(t, "the queue continues")
	for _, nc := range []*nats.Conn{nc, inProcess} { // both connect again
		for end := time.Now().Add(time.Minute); !nc.IsConnected() && time.Now().Before(end); {
			time.Sleep(20 * time.Millisecond)
		}
		f.publish(t, f.open(t, nc))
	}
	stream, err := f.open(t, nc).Stream(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	// One message more may be there: that of a reply that was not sent.
	if got := int(stream.CachedInfo().State.NumSubjects); got < f.kept || got > f.kept+1 {
		t.Errorf("the stream has %d messages, want %d", got, f.kept)
	}
	if strings.Contains(f.reports.String(), token) {
		t.Error("a report has the token")
	}
}

func (f *full) inProcess(t *testing.T) *nats.Conn {
	t.Helper()
	nc, err := f.server.Connect()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}

// TestFailedRestart replaces the directory of a server by a file while the server waits for space. The server
// cannot be started again, and reports that.
func TestFailedRestart(t *testing.T) {
	t.Parallel()
	f := newFull(t)
	if err := os.Rename(f.dir, f.dir+"-moved"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(f.dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-f.server.Failed():
		if !errors.Is(err, natsserver.ErrStopped) || !errors.Is(err, syscall.ENOTDIR) {
			t.Errorf("error %v", err)
		}
	case <-time.After(time.Minute):
		t.Fatalf("the server has not failed:\n%s", f.reports)
	}
}
