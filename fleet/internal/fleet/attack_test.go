package fleet_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"gcsup/fleet/internal/fleet"
	"gcsup/internal/require"
)

// deployed starts a NATS server with the accounts of deploy/nats.conf, and returns a function that connects as one of
// its users.
func deployed(t *testing.T) func(user string) *nats.Conn {
	t.Helper()
	text := must(os.ReadFile("../../deploy/nats.conf"))
	_, accounts, ok := strings.Cut(string(text), "\naccounts {")
	if !ok {
		t.Fatal("nats.conf has no accounts")
	}
	config := filepath.Join(t.TempDir(), "nats.conf")
	require.NoError(t, os.WriteFile(config, fmt.Appendf(nil, "jetstream { store_dir: %q }\naccounts {%s", t.TempDir(), accounts), 0o600))
	opts := must(server.ProcessConfigFile(config))
	for _, u := range opts.Users {
		u.Password = u.Username
	}
	return serve(t, opts)
}

// serve starts a NATS server, and returns a function that connects as one of its users, whose passwords are their names.
func serve(t *testing.T, opts *server.Options) func(user string) *nats.Conn {
	t.Helper()
	opts.DontListen, opts.NoSigs, opts.NoLog = true, true, true
	s := must(server.NewServer(opts))
	go s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	if !s.ReadyForConnections(time.Minute) {
		t.Fatal("the server is not ready")
	}
	return func(user string) *nats.Conn {
		t.Helper()
		nc := must(nats.Connect("", nats.InProcessServer(s), nats.UserInfo(user, user)))
		t.Cleanup(nc.Close)
		return nc
	}
}

const (
	operator = "operator.gcsup-fleet"
	worker   = "worker.gcsup-fleet"
)

// keyOf returns a key by its number, and its public key.
func keyOf(n byte) (ed25519.PrivateKey, []ed25519.PublicKey) {
	key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{n}, ed25519.SeedSize))
	return key, []ed25519.PublicKey{key.Public().(ed25519.PublicKey)}
}

// TestCompromisedWorker has the connection of a worker to NATS, with the permissions of deploy/nats.conf. It makes the
// server publish messages of its choice to the subjects of tasks, settings and dead letters. No worker obeys.
func TestCompromisedWorker(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	as := deployed(t)
	key, public := keyOf(1)
	q := must(fleet.OpenQueue(t.Context(), as(operator), fleet.QueueOptions{AckWait: w.ackWait, SignKey: key, VerifyKeys: public}))
	w.fill("%d", 5, 1000)
	w.write("large", 2<<20, 1)
	secret := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(secret, []byte("secret"), 0o600))
	w.submit(q)
	mallory := as(worker)
	js := must(jetstream.New(mallory))
	stream := must(must(jetstream.New(as(operator))).Stream(t.Context(), "gcsup-default"))
	signed := map[string][]byte{} // by the first object
	for seq := uint64(1); seq <= stream.CachedInfo().State.LastSeq; seq++ {
		msg := must(stream.GetMsg(t.Context(), seq))
		signed[taskOf(t, msg.Data).Files[0].Object] = msg.Data
	}
	if len(signed) != 2 {
		t.Fatalf("%d tasks, want a group and a large file", len(signed))
	}

	// An honest worker has the same permissions.
	log := &logBuffer{}
	q2 := must(fleet.OpenQueue(t.Context(), as(worker), fleet.QueueOptions{VerifyKeys: public}))
	honest := w.worker(q2, "honest", func(o *fleet.WorkerOptions) {
		o.UntilEmpty, o.MaxFailures, o.Logger = false, 1, slog.New(slog.NewTextHandler(log, nil))
	})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- honest.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Log(log)
		}
	})
	w.await("done", func() bool { return w.status(q).Done.Files == 6 })
	settings := must(js.KeyValue(t.Context(), "gcsup-default-control"))
	require.NoError(t, q.SetDrain(t.Context(), true))
	drain := must(settings.Get(t.Context(), "settings")).Value()
	require.NoError(t, q.SetDrain(t.Context(), false))
	require.NoError(t, q.SetRate(t.Context(), 1<<30))
	w.await("limited", func() bool { return honest.Status().RateLimit == 1<<30 })

	// publish makes the server publish a message: the worker stores it in a bucket that it may write, and reads it with
	// another reply subject than its inbox.
	records := must(js.KeyValue(t.Context(), "gcsup-default-records"))
	publish := func(subject string, data []byte) {
		t.Helper()
		must(records.Put(t.Context(), "x", data))
		require.NoError(t, mallory.PublishRequest("$JS.API.DIRECT.GET.KV_gcsup-default-records.$KV.gcsup-default-records.x", subject, nil))
		require.NoError(t, mallory.Flush())
	}
	letters := func() map[string]fleet.DeadLetter {
		t.Helper()
		all := map[string]fleet.DeadLetter{}
		require.NoError(t, q.Failed(t.Context(), func(key string, l fleet.DeadLetter) error {
			all[key] = l
			return nil
		}))
		return all
	}
	steal := func(task *fleet.Task) {
		task.Files = task.Files[:1]
		task.Files[0].Path, task.Files[0].Object, task.Files[0].Size = secret, "stolen", 6
	}
	for name, attack := range map[string]func(*fleet.Task){
		"another file":       steal,
		"no signature":       func(task *fleet.Task) { steal(task); task.Signature = nil },
		"one of the files":   func(task *fleet.Task) { task.Files = task.Files[:1] },
		"another submission": func(task *fleet.Task) { task.Submission = "0" },
		"another bucket":     func(task *fleet.Task) { task.Settings.Bucket = "other-bucket" },
		"another generation": func(task *fleet.Task) { task.Files[0].Generation = 1 },
		"an ACL":             func(task *fleet.Task) { task.Settings.PredefinedACL = "publicRead" },
		"replaced objects":   func(task *fleet.Task) { task.Replace = true },
	} {
		task := taskOf(t, signed["tree/0"])
		attack(task)
		publish("gcsup.default.task3."+task.ID(), must(json.Marshal(task)))
		w.await("refused: "+name, func() bool { return len(letters()) > 0 })
		if n, err := q.RetryFailed(t.Context()); n != 0 || !errors.Is(err, fleet.ErrSignature) {
			t.Errorf("%s: retry: %d, %v", name, n, err)
		}
		for key, l := range letters() {
			if l.Kind != "signature" {
				t.Errorf("%s: dead letter %+v, want that the signature is not accepted", name, l)
			}
			require.NoError(t, q.Forget(t.Context(), key))
		}
	}
	if _, ok := w.gcs.Object(bucket, "stolen"); ok {
		t.Error("a forged task was executed")
	}

	// A forged dead letter is not retried. The worker may write dead letters.
	task := taskOf(t, signed["tree/large"])
	steal(task)
	failed := must(js.KeyValue(t.Context(), "gcsup-default-failed"))
	must(failed.Put(t.Context(), task.ID(), must(json.Marshal(fleet.DeadLetter{V: 1, Task: task, Kind: "no_input"}))))
	if added, err := q.Retry(t.Context(), task.ID()); added || !errors.Is(err, fleet.ErrSignature) {
		t.Errorf("retry of a forged dead letter: %t, %v, want ErrSignature", added, err)
	}
	if n, err := q.RetryFailed(t.Context()); n != 0 || !errors.Is(err, fleet.ErrSignature) {
		t.Errorf("retry --failed of a forged dead letter: %d, %v, want ErrSignature", n, err)
	}

	// Old settings are refused, and the worker still takes tasks. An old task makes no object again.
	publish("$KV.gcsup-default-control.settings", drain)
	w.await("refused: old settings", func() bool { return strings.Contains(log.String(), "settings are refused") })
	publish("gcsup.default.task3."+taskOf(t, signed["tree/large"]).ID(), signed["tree/large"])
	w.write("new", 2<<20, 7)
	w.submit(q)
	w.await("done", func() bool { return w.made("tree/new") > 0 && w.status(q).Tasks == 0 })
	w.check()
}

// taskOf returns the task of a message.
func taskOf(t *testing.T, message []byte) *fleet.Task {
	t.Helper()
	task := new(fleet.Task)
	require.NoError(t, json.Unmarshal(message, task))
	return task
}

// TestRetrySigned retries a file of a group. The worker accepts it, because the dead letter has the signature of the group.
func TestRetrySigned(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	key, public := keyOf(1)
	q := must(fleet.OpenQueue(t.Context(), w.connect(), fleet.QueueOptions{SignKey: key, VerifyKeys: public}))
	w.fill("%d", 7, 1000)
	w.submit(q)
	path := filepath.Join(w.tree, "4")
	require.NoError(t, os.Rename(path, path+".away"))
	w.run(t.Context(), w.worker(q, "first", func(o *fleet.WorkerOptions) { o.MaxFailures = 1 }))
	require.NoError(t, os.Rename(path+".away", path))
	w.wantLetters(q, map[string]string{"tree/4": "no_input"})
	if n, err := q.RetryFailed(t.Context()); n != 1 || err != nil {
		t.Fatalf("retry: %d, %v", n, err)
	}
	w.ends(w.worker(q, "second", nil), nil)
	w.check()
}

// TestLimits submits files that the worker must not read, or upload. It does not, even through a link. It uploads a file
// below its root that is submitted through a link outside.
func TestLimits(t *testing.T) {
	t.Parallel()
	w, q := submitted(t, nil, map[string]int{"in/a": 1000, "in-other/b": 1000, "in/large": 2 << 20, "in/link": 6, "alias": 1000})
	outside := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(outside, "secret"), []byte("secret"), 0o600))
	in := filepath.Join(w.tree, "in")
	link, alias := filepath.Join(in, "link"), filepath.Join(w.tree, "alias")
	require.NoError(t, errors.Join(os.Remove(link), os.Symlink(filepath.Join(outside, "secret"), link)))
	require.NoError(t, errors.Join(os.Rename(alias, filepath.Join(in, "target")), os.Symlink(filepath.Join("in", "target"), alias)))
	w.run(t.Context(), w.worker(q, "a", func(o *fleet.WorkerOptions) { o.MaxFailures, o.Roots, o.Buckets = 1, []string{in}, []string{bucket} }))
	w.wantLetters(q, map[string]string{"tree/in/link": "limits", "tree/in-other/b": "limits"})
	for _, name := range []string{"tree/in/a", "tree/in/large", "tree/alias"} {
		if _, ok := w.gcs.Object(bucket, name); !ok {
			t.Errorf("%s is missing", name)
		}
	}
	require.NoError(t, os.Remove(link))
	must(fleet.Submit(t.Context(), q, w.submission("other/")))
	w.run(t.Context(), w.worker(q, "b", func(o *fleet.WorkerOptions) { o.MaxFailures, o.Buckets = 1, []string{"other-bucket"} }))
	if _, ok := w.gcs.Object(bucket, "other/in/a"); ok {
		t.Error("the worker has uploaded to another bucket")
	}
}

// TestRootMissing takes the tree away from a worker with a root. The worker ends, and the file becomes no dead letter.
// Another worker does not start before the tree is back.
func TestRootMissing(t *testing.T) {
	t.Parallel()
	w, q := submitted(t, nil, map[string]int{"data/a": 1000})
	root := filepath.Join(w.tree, "data")
	once := func(o *fleet.WorkerOptions) { o.MaxFailures, o.Roots, o.UntilEmpty = 1, []string{root}, false }
	first := w.worker(q, "first", once)
	require.NoError(t, os.Rename(root, root+".away"))
	w.ends(first, fleet.ErrRoot)
	require.NoError(t, os.Mkdir(root, 0o700))
	for range 2 { // empty, then missing
		if _, err := fleet.NewWorker(t.Context(), q, w.gcs.Client(), w.options("second", once)); !errors.Is(err, fleet.ErrRoot) {
			t.Errorf("%v, want ErrRoot", err)
		}
		require.NoError(t, os.RemoveAll(root))
	}
	require.NoError(t, os.Rename(root+".away", root))
	w.run(t.Context(), w.worker(q, "third", nil))
	w.wantLetters(q, nil)
	w.check()
}

// logBuffer collects the log of a worker.
type logBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
