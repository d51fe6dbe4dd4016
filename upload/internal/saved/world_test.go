package saved

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gcsup/chunk"
	"gcsup/fakegcs"
	"gcsup/fakegcs/memnet"
	"gcsup/internal/require"
	"gcsup/internal/testsize"
	"gcsup/session"
	"gcsup/session/state"
	"gcsup/session/state/bucketstore"
)

const (
	q     = int64(chunk.Granularity)
	id    = "00112233445566778899"
	newID = "99887766554433221100"
)

var spec = session.Spec{Bucket: "bkt", Object: "obj"}

// service is a service. Its time is virtual in a bubble of synctest.
type service struct {
	t         *testing.T
	transport http.RoundTripper
	client    *session.Client
}

func newService(t *testing.T) *service {
	t.Helper()
	server, err := fakegcs.New(&fakegcs.Options{CreateBuckets: true})
	require.NoError(t, err)
	ln, dial := memnet.Listen()
	hs, transport := &http.Server{Handler: server}, &http.Transport{DialContext: dial}
	go hs.Serve(ln)
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		_ = hs.Close()
		_ = server.Close()
	})
	s := &service{t: t, transport: transport}
	s.client = s.connect(transport)
	return s
}

func (s *service) connect(transport http.RoundTripper) *session.Client {
	s.t.Helper()
	client, err := session.NewClient(&http.Client{Transport: transport}, "http://gcs.test")
	require.NoError(s.t, err)
	return client
}

// start returns the URI of a new session: no other code can make one.
func (s *service) start() session.URI {
	s.t.Helper()
	uri := s.client.Start(s.t.Context(), spec, -1).URI
	if uri.IsZero() {
		s.t.Fatal("no URI")
	}
	return uri
}

// sameURI compares two URIs: == compares pointers.
func sameURI(a, b session.URI) bool { return reflect.DeepEqual(a, b) }

// link is the network of one process. While it is down, no request arrives.
type link struct {
	http.RoundTripper
	down atomic.Bool
}

func (l *link) RoundTrip(req *http.Request) (*http.Response, error) {
	if l.down.Load() {
		<-req.Context().Done()
		return nil, req.Context().Err()
	}
	return l.RoundTripper.RoundTrip(req)
}

// share returns the store of a process, in a bucket that it shares with others.
func (s *service) share(holder string) (*bucketstore.Store, *link) {
	s.t.Helper()
	network := &link{RoundTripper: s.transport}
	store, err := bucketstore.Open(s.t.Context(), s.connect(network), "state", "uploads", &bucketstore.Options{Unsealed: true, Holder: holder})
	require.NoError(s.t, err)
	return store, network
}

// openDir returns a store in a directory.
func openDir(t *testing.T) (dir *state.Dir, path string) {
	t.Helper()
	path = filepath.Join(testsize.MemDir(t), "state")
	dir, err := state.OpenDir(path)
	require.NoError(t, err)
	t.Cleanup(func() { _ = dir.Close() })
	return dir, path
}

// newDoc returns a saved upload of an upload of 1 MiB, of which a quarter is committed.
func newDoc(id string, uri session.URI) *state.Upload {
	return &state.Upload{
		ID: id, Endpoint: "http://gcs.test", Spec: spec, SourcePath: "/source", Source: chunk.Identity{Size: 4 * q},
		Session: state.Session{URI: uri, Created: time.Now(), Committed: q, HighWater: 2 * q},
	}
}

func save(t *testing.T, store state.Store, docs ...*state.Upload) {
	t.Helper()
	for _, doc := range docs {
		require.NoError(t, store.Save(t.Context(), doc))
	}
}

func load(t *testing.T, store state.Store, id string) *state.Upload {
	t.Helper()
	doc, err := store.Load(t.Context(), id)
	require.NoError(t, err)
	return doc
}

// damage replaces a saved upload in the directory of a Dir by bytes that no store writes.
func damage(t *testing.T, path, id, content string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(path, id+".json"), []byte(content), 0o600))
}

const newer = `{"v":2}` // the saved upload of a newer program

func asItIs(ctx context.Context) context.Context { return ctx }

// open opens the upload of a file. The Call has only what Open needs.
func open(t *testing.T, store state.Store, with ...func(*Call, *state.Upload)) (*Journal, *state.Upload) {
	t.Helper()
	c := Call{
		Store: store, Running: &Running{}, Last: asItIs, Background: asItIs,
		Waiting: func(h *state.HeldError) { t.Errorf("waits for %v", h) }, Stale: func(err error) { t.Errorf("not saved: %v", err) },
	}
	draft := state.Upload{ID: id, Endpoint: "http://gcs.test", Spec: spec, SourcePath: "/source"}
	for _, f := range with {
		f(&c, &draft)
	}
	j, doc, damaged, err := Open(t.Context(), c, draft)
	if err != nil || damaged != nil {
		t.Fatal(err, damaged)
	}
	return j, doc
}

// fault is what happens to a call of a faulty store.
type fault int

const (
	works  fault = iota
	before       // it fails, and had no effect
	after        // it fails, and had its effect
)

var errFault = errors.New("the disk is full")

// faulty is a store whose calls fail. Its locks are those of the store in it.
type faulty struct {
	state.Store
	fault func(op string, call int) fault // call counts from 1

	mu    sync.Mutex
	calls int
}

func (f *faulty) do(op string, effect func() error) error {
	f.mu.Lock()
	f.calls++
	now := f.fault(op, f.calls)
	f.mu.Unlock()
	if now != before {
		if err := effect(); now == works {
			return err
		}
	}
	return errFault
}

func (f *faulty) Load(ctx context.Context, id string) (t *state.Upload, err error) {
	err = f.do("load", func() error {
		t, err = f.Store.Load(ctx, id)
		return err
	})
	if err != nil {
		t = nil
	}
	return t, err
}

func (f *faulty) Save(ctx context.Context, t *state.Upload) error {
	return f.do("save", func() error { return f.Store.Save(ctx, t) })
}

func (f *faulty) Delete(ctx context.Context, id string) error {
	return f.do("delete", func() error { return f.Store.Delete(ctx, id) })
}

// failing returns a store whose calls of one kind fail while on is true.
func failing(store state.Store, op string, on *atomic.Bool) *faulty {
	return &faulty{Store: store, fault: func(o string, _ int) fault {
		if o == op && on.Load() {
			return before
		}
		return works
	}}
}
