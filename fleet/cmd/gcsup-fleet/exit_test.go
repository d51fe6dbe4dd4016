//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"gcsup/fakegcs"
	"gcsup/fleet/internal/fleet"
	"gcsup/internal/cli/exit"
	"gcsup/internal/require"
	"gcsup/internal/testprocess"
)

// TestStatusWait checks the exit codes of status --wait.
func TestStatusWait(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fakegcs.Options{})
	w.write("a", 10)
	status := func(flags string, want int, text string) {
		t.Helper()
		w.wants(want, text, append([]string{"status", "--wait"}, strings.Fields(flags)...)...)
	}
	submit := func() { w.output("submit", "-r", w.tree+"/.", "gs://my-bucket/tree") }
	work := func() { w.run(tryOnce...) }
	status("", exit.Temporary, "it is not known what was submitted")
	submit()
	work()
	status("", exit.OK, "done ")
	w.write("b", 10)
	submit()
	require.NoError(t, os.Remove(filepath.Join(w.tree, "b")))
	work()
	status("", exit.Data, "no_input")
	status("--json", exit.Data, `"failed":1`)
	status("--failed", exit.Data, w.tree+"/b: ")
	status("--failed --json", exit.Data, `"kind":"no_input"`)
	var letter struct{ Key string }
	if err := json.Unmarshal(w.output("status", "--failed", "--json"), &letter); err != nil || letter.Key == "" {
		t.Errorf("the dead letter has no key: %v", err)
	}
	w.wants(exit.NoInput, "", "forget", letter.Key+"0")
	w.wants(exit.OK, "1 files are forgotten\n", "forget", letter.Key)
	status("", exit.OK, "done ")
	require.NoError(t, os.RemoveAll(filepath.Join(w.dir, "nats")))
	status("--failed", exit.Temporary, "it is not known what was submitted")
	work() // creates the queue again
	status("--failed", exit.Temporary, "it is not known what was submitted")
}

// TestRetryHint retries a file that is not as it was submitted. The command says what it needs.
func TestRetryHint(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fakegcs.Options{})
	w.write("a", 10)
	w.output("submit", "-r", w.tree+"/.", "gs://my-bucket/tree")
	w.write("a", 11)
	w.run(tryOnce...)
	if code, messages := w.run("retry", "--failed"); code != exit.OK || !strings.Contains(messages, "1 files will fail again: ") || !strings.Contains(messages, "--accept-changed") {
		t.Errorf("exit code %d: %s", code, messages)
	}
}

// TestQueueLostWhileWaiting deletes the queue while status waits.
func TestQueueLostWhileWaiting(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fakegcs.Options{})
	w.write("a", 10)
	s := limitedServer(t)
	w.output("submit", "-r", w.tree+"/.", "gs://my-bucket/tree", "--nats", s.url("admin"))
	time.AfterFunc(2*time.Second, func() {
		nc, err := nats.Connect(s.url("admin"))
		if err != nil {
			t.Error(err)
			return
		}
		defer nc.Close()
		if _, err := nc.Request("$JS.API.STREAM.DELETE.gcsup-default", nil, 5*time.Second); err != nil {
			t.Error(err)
		}
	})
	w.wants(exit.Temporary, fleet.ErrQueueLost.Error(), "status", "--wait", "--nats", s.url("admin"))
}

// limited is a NATS server with users: admin has all permissions, reader can only read the fleet, blind cannot
// read the keys of buckets, and powerless has no permissions.
type limited struct{ port int }

func (l limited) url(user string) string {
	return fmt.Sprintf("nats://%s:%s@127.0.0.1:%d", user, user, l.port)
}

func limitedServer(t *testing.T) limited {
	t.Helper()
	inbox := &server.SubjectPermission{Allow: []string{"_INBOX.>"}}
	reads := &server.SubjectPermission{Allow: []string{
		"$JS.API.STREAM.INFO.*", "$JS.API.CONSUMER.NAMES.*", "$JS.API.CONSUMER.INFO.>", "$JS.API.DIRECT.GET.>", "$JS.API.CONSUMER.CREATE.KV_>", "$JS.API.CONSUMER.CREATE.*.>", "$JS.API.CONSUMER.DELETE.>",
	}}
	blind := &server.SubjectPermission{Allow: reads.Allow, Deny: []string{"$JS.API.DIRECT.GET.>"}}
	port := unusedPort(t)
	s := serveNATS(t, port, &server.Options{Users: []*server.User{
		{Username: "admin", Password: "admin"},
		{Username: "reader", Password: "reader", Permissions: &server.Permissions{Publish: reads, Subscribe: inbox}},
		{Username: "blind", Password: "blind", Permissions: &server.Permissions{Publish: blind, Subscribe: inbox}},
		{Username: "powerless", Password: "powerless", Permissions: &server.Permissions{Publish: inbox, Subscribe: inbox}},
	}})
	if !s.ReadyForConnections(time.Minute) {
		t.Fatal("the server is not ready")
	}
	return limited{port}
}

// TestPermissionViolation checks that the exit code is 77 if the servers refuse a request.
func TestPermissionViolation(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fakegcs.Options{})
	w.write("a", 10)
	s := limitedServer(t)
	w.output("submit", "-r", w.tree+"/.", "gs://my-bucket/tree", "--nats", s.url("admin"))
	for _, line := range []string{
		"status --nats " + s.url("powerless"),
		"status --wait --nats " + s.url("blind"),
		"drain --nats " + s.url("reader"),
		"limit 1MiB --nats " + s.url("reader"),
		"work --state=gs://state-bucket/uploads --state-unsealed --nats " + s.url("reader"),
		"submit -r " + w.tree + " gs://other-bucket/ --nats " + s.url("reader"),
	} {
		w.wants(exit.Permission, "ermissions ", strings.Fields(line)...)
	}
	w.wants(exit.OK, "", "status", "--nats", s.url("reader"))
	w.wants(exit.OK, "has no TLS", append(tryOnce, "--nats", s.url("admin"))...)
	w.output("cancel", "--nats", s.url("admin")) // status --wait then asks whether the empty queue is settled
	w.wants(exit.Permission, "ermissions ", "status", "--wait", "--nats", s.url("blind"))
}

// TestStopDuringStart stops commands that wait for their server.
func TestStopDuringStart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fakegcs.Options{})
	cmd := w.command("work", "--state=gs://state-bucket/uploads", "--state-unsealed", "--nats", fmt.Sprintf("nats://127.0.0.1:%d", unusedPort(t)))
	cmd.Stderr = nil
	p := testprocess.Start(t, cmd)
	p.Await("next attempt in")
	p.Signal(syscall.SIGTERM)
	if p.Wait() != exit.OK {
		t.Errorf("want exit code 0 as after a stop of a worker that runs: %s", p.Output())
	}
}
