package bucketstore_test

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gcsup/chunk"
	"gcsup/fakegcs"
	"gcsup/internal/cloudtest"
	"gcsup/session"
	"gcsup/session/state"
	"gcsup/session/state/bucketstore"
)

// world is a service in virtual time.
type world struct {
	t         *testing.T
	server    *fakegcs.Server
	transport *http.Transport
	client    *session.Client
	saved     *state.Upload // for one test
}

// inBubble runs f with a service in a bubble of virtual time.
func inBubble(t *testing.T, opts *fakegcs.Options, f func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server, transport, stop := cloudtest.Serve(t, opts)
		w := &world{t: t, server: server, transport: transport}
		w.client = w.newClient(w.transport)
		t.Cleanup(stop)
		f(t, w)
	})
}

func (w *world) newClient(transport http.RoundTripper) *session.Client {
	w.t.Helper()
	client, err := session.NewClient(&http.Client{Transport: transport}, "http://gcs.test")
	if err != nil {
		w.t.Fatal(err)
	}
	return client
}

// process is a simulated process with its own Store and network.
type process struct {
	*bucketstore.Store
	*network
}

// network is the network of one process.
type network struct {
	http.RoundTripper
	mu   sync.Mutex
	open chan struct{} // closed when the process resumes; nil if it is not suspended
}

// RoundTrip waits while the process is suspended.
func (n *network) RoundTrip(req *http.Request) (*http.Response, error) {
	n.mu.Lock()
	open := n.open
	n.mu.Unlock()
	if open != nil {
		<-open
	}
	return n.RoundTripper.RoundTrip(req)
}

// suspend delays every request of the process until wake.
func (n *network) suspend() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.open = make(chan struct{})
}

// wake sends the delayed requests.
func (n *network) wake() {
	n.mu.Lock()
	defer n.mu.Unlock()
	close(n.open)
	n.open = nil
}

// start starts a process.
func (w *world) start(holder string, with ...func(*bucketstore.Options)) process {
	w.t.Helper()
	opts := &bucketstore.Options{Unsealed: true, Holder: holder}
	for _, f := range with {
		f(opts)
	}
	n := &network{RoundTripper: w.transport}
	s, err := bucketstore.Open(w.t.Context(), w.newClient(n), "state", "uploads", opts)
	if err != nil {
		w.t.Fatal(err)
	}
	return process{s, n}
}

func aead(b byte) cipher.AEAD {
	key := make([]byte, 32)
	for i := range key {
		key[i] = b
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err)
	}
	a, err := cipher.NewGCM(block)
	if err != nil {
		panic(err)
	}
	return a
}

// newUpload returns a saved upload of an upload of 10 MiB.
func newUpload(t *testing.T, client *session.Client, id string) *state.Upload {
	t.Helper()
	spec := session.Spec{Bucket: "data", Object: "o"}
	r := client.Start(t.Context(), spec, 10<<20)
	if r.URI.IsZero() {
		t.Fatal(r.Status, r.Err)
	}
	return &state.Upload{
		ID: id, Endpoint: client.Endpoint(), Spec: spec, Session: state.Session{Created: time.Now(), URI: r.URI},
		SourcePath: "/o", Source: chunk.Identity{Size: 10 << 20},
	}
}

// take acquires a lease.
func take(t *testing.T, s state.Store, id string) state.Lease {
	t.Helper()
	l, err := state.Acquire(t.Context(), s, id)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Release(context.Background(), nil) })
	return l
}
