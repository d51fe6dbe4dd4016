package fleet_test

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"gcsup/backoff"
	"gcsup/fakegcs"
	"gcsup/fleet/internal/fleet"
	"gcsup/fleet/internal/natsserver"
	"gcsup/internal/require"
	"gcsup/upload"
	"gcsup/upload/tree"
)

const (
	bucket      = "data-bucket"
	stateBucket = "state-bucket"
)

// world is a NATS server, an emulator of Cloud Storage and a tree of files.
type world struct {
	t       testing.TB
	gcs     *fakegcs.TestServer
	nats    *natsserver.Server
	natsDir string
	tree    string
	aead    cipher.AEAD
	ackWait time.Duration

	generations generations
	onRequest   atomic.Pointer[func(fakegcs.Request)] // called after each request
}

func newWorld(t testing.TB, opts *fakegcs.Options) *world {
	t.Helper()
	if opts == nil {
		opts = &fakegcs.Options{}
	}
	opts.CreateBuckets, opts.NoMD5 = true, true
	w := &world{t: t, natsDir: t.TempDir(), tree: t.TempDir(), ackWait: fleet.MinAckWait}
	w.generations.seen = map[string]map[int64]bool{}
	ready := make(chan struct{})
	opts.OnRequest = func(r fakegcs.Request) {
		<-ready
		if r.Bucket == bucket && r.Object != "" {
			w.generations.note(w.gcs.Server, r.Object)
		}
		if f := w.onRequest.Load(); f != nil {
			(*f)(r)
		}
	}
	w.gcs = fakegcs.NewServer(t, opts)
	close(ready)
	block, err := aes.NewCipher(make([]byte, 32))
	require.NoError(t, err)
	w.aead, err = cipher.NewGCM(block)
	require.NoError(t, err)
	w.startNATS()
	t.Cleanup(func() { w.nats.Close() })
	return w
}

// natsToken is the token of the server for connections over its port.
const natsToken = "token"

func (w *world) startNATS() {
	w.t.Helper()
	var err error
	w.nats, err = natsserver.Start(natsserver.Options{Dir: w.natsDir, Port: -1, Token: natsToken})
	require.NoError(w.t, err)
}

// connect returns a connection to NATS.
func (w *world) connect() *nats.Conn {
	w.t.Helper()
	nc := must(w.nats.Connect())
	w.t.Cleanup(nc.Close)
	return nc
}

// queue opens the queue.
func (w *world) queue() *fleet.Queue {
	w.t.Helper()
	return must(fleet.OpenQueue(w.t.Context(), w.connect(), fleet.QueueOptions{AckWait: w.ackWait}))
}

// write makes a file of the tree.
func (w *world) write(name string, size int, seed uint64) {
	w.t.Helper()
	path := filepath.Join(w.tree, name)
	require.NoError(w.t, os.MkdirAll(filepath.Dir(path), 0o777))
	require.NoError(w.t, os.WriteFile(path, content(size, seed), 0o666))
}

// fill makes n files of the tree, whose names follow a pattern.
func (w *world) fill(pattern string, n, size int) {
	w.t.Helper()
	for i := range n {
		w.write(fmt.Sprintf(pattern, i), size, uint64(i))
	}
}

func content(size int, seed uint64) []byte {
	data := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte(fmt.Appendf(nil, "%016d%016d", seed, size))).Read(data)
	return data
}

// spec is an object of the bucket.
func spec(name string) upload.Spec { return upload.Spec{Bucket: bucket, Object: name} }

// uploader returns an Uploader without a store.
func (w *world) uploader() *upload.Uploader {
	w.t.Helper()
	return must(upload.New(w.gcs.Client(), &upload.Options{Endpoint: w.gcs.URL}))
}

// submit submits the tree.
func (w *world) submit(q *fleet.Queue) fleet.Submitted {
	w.t.Helper()
	return must(fleet.Submit(w.t.Context(), q, w.submission("tree/")))
}

// submitted returns a world whose tree has files of these sizes, and its queue, to which the tree was submitted.
func submitted(t *testing.T, opts *fakegcs.Options, files map[string]int) (*world, *fleet.Queue) {
	t.Helper()
	w := newWorld(t, opts)
	for i, name := range slices.Sorted(maps.Keys(files)) {
		w.write(name, files[name], uint64(i+1))
	}
	q := w.queue()
	w.submit(q)
	return w, q
}

// submission returns a Submission of the tree with a destination.
func (w *world) submission(prefix string) fleet.Submission {
	w.t.Helper()
	t := must(tree.New([]tree.Source{{Path: w.tree}}, upload.Spec{Bucket: bucket, Object: prefix}, &tree.Options{Sorted: true}))
	return fleet.Submission{
		Jobs: t.Walk(w.t.Context()), Listing: upload.Listing{Bucket: bucket, Prefix: prefix}, Settings: upload.Spec{Bucket: bucket},
		Uploader: w.uploader(), Report: func(job upload.Job, err error) { w.t.Errorf("submit %s: %v", job.Path, err) },
	}
}

// worker returns a worker with short waits.
func (w *world) worker(q *fleet.Queue, name string, change func(*fleet.WorkerOptions)) *fleet.Worker {
	w.t.Helper()
	return w.workerOf(q, w.gcs.Client(), name, change)
}

func (w *world) workerOf(q *fleet.Queue, hc *http.Client, name string, change func(*fleet.WorkerOptions)) *fleet.Worker {
	w.t.Helper()
	return must(fleet.NewWorker(w.t.Context(), q, hc, w.options(name, change)))
}

// options returns the options of a worker.
func (w *world) options(name string, change func(*fleet.WorkerOptions)) fleet.WorkerOptions {
	opts := fleet.WorkerOptions{
		Name: name, StateBucket: stateBucket, StatePrefix: "uploads", AEAD: w.aead, UntilEmpty: true,
		Upload: upload.Options{Endpoint: w.gcs.URL, Policy: backoff.Policy{Initial: time.Millisecond, Maximum: 10 * time.Millisecond, Jitter: backoff.FullJitter}},
	}
	if testing.Verbose() {
		opts.Logger = slog.New(slog.NewTextHandler(w.t.Output(), nil))
	}
	if change != nil {
		change(&opts)
	}
	return opts
}

// victim is a worker that a test can kill. A killed worker reaches neither NATS nor the service.
type victim struct {
	*fleet.Worker
	kill func()
	done chan struct{} // closed when Run has returned
}

// start starts a worker that can be killed.
func (w *world) start(name string, change func(*fleet.WorkerOptions)) *victim {
	w.t.Helper()
	return w.startWith(name, w.gcs.Client(), change)
}

// startWith is like start, for a worker with an HTTP client.
func (w *world) startWith(name string, client *http.Client, change func(*fleet.WorkerOptions)) *victim {
	w.t.Helper()
	nc := w.connect()
	q := must(fleet.OpenQueue(w.t.Context(), nc, fleet.QueueOptions{}))
	network, cut := context.WithCancel(context.Background())
	hc := *client
	hc.Transport = severable{base: hc.Transport, network: network}
	v := &victim{Worker: w.workerOf(q, &hc, name, change), done: make(chan struct{})}
	ctx, stop := context.WithCancel(context.Background())
	v.kill = func() {
		cut()
		nc.Close()
		stop()
	}
	go func() {
		defer close(v.done)
		_ = v.Run(ctx)
	}()
	w.t.Cleanup(func() {
		v.kill()
		<-v.done
	})
	return v
}

// severable is a transport that fails after the worker was killed.
type severable struct {
	base    http.RoundTripper
	network context.Context
}

func (s severable) RoundTrip(req *http.Request) (*http.Response, error) {
	if s.network.Err() != nil {
		return nil, errors.New("network is gone")
	}
	ctx, cancel := context.WithCancelCause(req.Context())
	context.AfterFunc(s.network, func() { cancel(errors.New("network is gone")) })
	return s.base.RoundTrip(req.WithContext(ctx))
}

// await waits until a condition is true.
func (w *world) await(what string, is func() bool) {
	w.t.Helper()
	for end := time.Now().Add(time.Minute); !is(); pause(w.t.Context(), 10*time.Millisecond) {
		if time.Now().After(end) {
			w.t.Fatalf("not %s after a minute", what)
		}
	}
}

// run runs a worker until the queue is empty. Tests check dead letters themselves.
func (w *world) run(ctx context.Context, worker *fleet.Worker) {
	w.t.Helper()
	if err := worker.Run(ctx); err != nil && !errors.Is(err, fleet.ErrFilesFailed) {
		w.t.Error(err)
	}
}

// ends runs a worker until it ends with an error, which may be nil.
func (w *world) ends(worker *fleet.Worker, want error) {
	w.t.Helper()
	if err := worker.Run(w.t.Context()); !errors.Is(err, want) {
		w.t.Errorf("worker %s ends with %v, want %v", worker.Status().Name, err, want)
	}
}

// wantLetters checks the kinds of the dead letters, by object.
func (w *world) wantLetters(q *fleet.Queue, want map[string]string) {
	w.t.Helper()
	if got := w.letters(q); !maps.Equal(got, want) {
		w.t.Errorf("dead letters %v, want %v", got, want)
	}
}

// check compares all objects with the files, and checks that each was made exactly once.
func (w *world) check() {
	w.t.Helper()
	files := 0
	err := filepath.WalkDir(w.tree, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files++
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(w.tree, path)
		name := "tree/" + filepath.ToSlash(rel)
		got, err := w.gcs.ReadObject(bucket, name)
		switch made := w.made(name); {
		case err != nil:
			w.t.Errorf("%s is missing: %v", name, err)
		case !bytes.Equal(got, data):
			w.t.Errorf("%s is wrong", name)
		case made != 1:
			w.t.Errorf("%s was made %d times", name, made)
		}
		return nil
	})
	require.NoError(w.t, err)
	if files == 0 {
		w.t.Error("the tree is empty")
	}
}

// generations records which generations of each object were seen after a request.
type generations struct {
	mu   sync.Mutex
	seen map[string]map[int64]bool
}

// note records the generation that an object has after a request.
func (g *generations) note(s *fakegcs.Server, name string) {
	o, ok := s.Object(bucket, name)
	if !ok {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.seen[name] == nil {
		g.seen[name] = map[int64]bool{}
	}
	g.seen[name][o.Generation] = true
}

// made returns how many times an object was made.
func (w *world) made(name string) int {
	w.generations.note(w.gcs.Server, name)
	w.generations.mu.Lock()
	defer w.generations.mu.Unlock()
	return len(w.generations.seen[name])
}

// wipe deletes all data of JetStream, like the loss of a disk.
func (w *world) wipe() {
	w.t.Helper()
	js := must(jetstream.New(w.connect()))
	var names []string
	for name := range js.StreamNames(w.t.Context()).Name() {
		names = append(names, name)
	}
	for _, name := range names {
		require.NoError(w.t, js.DeleteStream(w.t.Context(), name))
	}
}
