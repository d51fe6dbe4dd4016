package fleet_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"gcsup/fleet/internal/fleet"
)

// The permissions to publish to NATS subjects that README.md lists. Each role may subscribe to
// _INBOX.>.
var (
	reads = append([]string{
		"$JS.API.STREAM.INFO.gcsup-default", "$JS.API.CONSUMER.NAMES.gcsup-default", "$JS.API.CONSUMER.INFO.gcsup-default.*",
	}, ofBuckets(
		"$JS.API.STREAM.INFO.KV_%", "$JS.API.DIRECT.GET.KV_%.>", "$JS.API.CONSUMER.CREATE.KV_%.>", "$JS.API.CONSUMER.DELETE.KV_%.>",
	)...)
	submits = append([]string{
		"gcsup.default.task3.*", "$JS.API.STREAM.MSG.GET.gcsup-default", "$KV.gcsup-default-records.*", "$KV.gcsup-default-failed.*",
	}, reads...)
	works = append([]string{
		"$JS.API.STREAM.MSG.GET.gcsup-default", "$JS.API.CONSUMER.MSG.NEXT.gcsup-default.*", "$JS.ACK.gcsup-default.>",
		"$KV.gcsup-default-records.*", "$KV.gcsup-default-failed.*", "$KV.gcsup-default-workers.>",
	}, reads...)
)

// ofBuckets returns the patterns for each bucket, whose name replaces %.
func ofBuckets(patterns ...string) (subjects []string) {
	for _, of := range []string{"records", "failed", "workers", "control"} {
		for _, p := range patterns {
			subjects = append(subjects, strings.ReplaceAll(p, "%", "gcsup-default-"+of))
		}
	}
	return subjects
}

// TestRoles uploads a tree with the permissions in README.md, and checks that these do not allow
// anything else.
func TestRoles(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	user := func(name string, publish []string) *server.User {
		return &server.User{Username: name, Password: name, Permissions: &server.Permissions{
			Publish: &server.SubjectPermission{Allow: publish}, Subscribe: &server.SubjectPermission{Allow: []string{"_INBOX.>"}},
		}}
	}
	connect := serve(t, &server.Options{JetStream: true, StoreDir: t.TempDir(), Users: []*server.User{
		{Username: "admin", Password: "admin"}, user("submit", submits), user("work", works), user("status", reads),
	}})
	as := func(name string) *fleet.Queue {
		return must(fleet.OpenQueue(t.Context(), connect(name), fleet.QueueOptions{MustExist: name != "admin"}))
	}
	as("admin") // creates the queue
	w.write("a", 1000, 1)
	w.write("large", 9<<20, 2)
	w.write("b", 1000, 3)
	w.submit(as("submit"))
	if got := w.submit(as("submit")); got.Queued != 3 {
		t.Errorf("second submit: %+v, want that 3 files were queued before", got)
	}
	w.write("c", 1000, 4)
	if got := w.submit(as("submit")); got.Queued != 1 || got.Files != 3 {
		t.Errorf("submit of a group with another file: %+v, want another group", got)
	}
	w.run(t.Context(), w.worker(as("work"), "a", nil))
	w.check()
	if s := w.status(as("status")); s.Done.Files != 6 || s.Failed != 0 { // the group of two files is finished, too
		t.Errorf("status %+v", s)
	}
	for _, name := range []string{"submit", "work", "status"} {
		q := as(name)
		// A refused request gets no reply.
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		if err := q.SetDrain(ctx, true); err == nil {
			t.Errorf("%s may drain the fleet", name)
		}
		if _, err := q.Cancel(ctx); err == nil {
			t.Errorf("%s may empty the queue", name)
		}
		cancel()
	}
	if _, err := fleet.Submit(t.Context(), as("status"), w.submission("other/")); !errors.Is(err, nats.ErrPermissionViolation) {
		t.Errorf("submit with the permissions of status: %v, want the reason", err)
	}
	if s := w.status(as("admin")); s.Draining || s.Done.Files != 6 {
		t.Errorf("status after what was refused: %+v", s)
	}
}
