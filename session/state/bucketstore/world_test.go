package bucketstore_test

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gcsup/chunk"
	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/cloudtest"
	"gcsup/internal/require"
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
		w.client = newClient(t, transport)
		t.Cleanup(stop)
		f(t, w)
	})
}

func newClient(t *testing.T, transport http.RoundTripper) *session.Client {
	t.Helper()
	client, err := session.NewClient(&http.Client{Transport: transport}, "http://gcs.test")
	require.NoError(t, err)
	return client
}

// process is a simulated process with its own Store and network.
type process struct {
	*bucketstore.Store
	*line
}

// line is the network of a process, which a test can cut or suspend.
type line struct {
	http.RoundTripper
	cut chan struct{} // closed when the process is dead

	mu   sync.Mutex
	held chan struct{} // closed when the process resumes; nil if it is not suspended
}

var errCut = errors.New("the process is dead")

func (l *line) RoundTrip(req *http.Request) (*http.Response, error) {
	l.mu.Lock()
	held := l.held
	l.mu.Unlock()
	if held != nil {
		select {
		case <-held:
		case <-l.cut:
		case <-req.Context().Done():
			return nil, context.Cause(req.Context())
		}
	}
	ctx, cancel := context.WithCancelCause(req.Context())
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		select {
		case <-l.cut:
			cancel(errCut)
		case <-stop:
		}
	}()
	select {
	case <-l.cut:
		return nil, errCut
	default:
	}
	return l.RoundTripper.RoundTrip(req.WithContext(ctx))
}

// suspend delays every request of the process until wake.
func (l *line) suspend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = make(chan struct{})
}

// wake sends the delayed requests.
func (l *line) wake() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.held)
	l.held = nil
}

// start starts a process.
func (w *world) start(holder string, with ...func(*bucketstore.Options)) process {
	w.t.Helper()
	opts := &bucketstore.Options{Unsealed: true, Holder: holder}
	for _, f := range with {
		f(opts)
	}
	l := &line{RoundTripper: w.transport, cut: make(chan struct{})}
	s, err := bucketstore.Open(w.t.Context(), newClient(w.t, l), "state", "uploads", opts)
	require.NoError(w.t, err)
	return process{s, l}
}

func aead(b byte) cipher.AEAD {
	block, err := aes.NewCipher(bytes.Repeat([]byte{b}, 32))
	if err != nil {
		panic(err)
	}
	a, err := cipher.NewGCM(block)
	if err != nil {
		panic(err)
	}
	return a
}

// refuse makes requests fail with a status: times of them, or all if times is -1.
func (w *world) refuse(match faults.Match, times, status int) {
	w.t.Helper()
	addFaults(w.t, w, faults.Fault{Match: match, Times: times, Do: faults.Action{Effect: faults.EffectStatus, Status: status}})
}

// down makes all requests to the state bucket fail.
func (w *world) down() { w.refuse(faults.Match{Bucket: "state"}, -1, 503) }

// write makes an object of another program in the state bucket.
func (w *world) write(name, content string) {
	w.t.Helper()
	to := "http://gcs.test/upload/storage/v1/b/state/o?uploadType=media&name=" + name
	resp, err := (&http.Client{Transport: w.transport}).Post(to, "text/plain", strings.NewReader(content))
	require.NoError(w.t, err)
	_ = resp.Body.Close()
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
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Release(context.Background(), nil) })
	return l
}
