package upload_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"

	"gcsup/fakegcs"
	"gcsup/internal/testsize"
	"gcsup/session"
	"gcsup/upload"
)

// mishap is a failure of one request.
type mishap string

const (
	lostRequest mishap = "lost request" // the service does not see it
	lostReply   mishap = "lost reply"   // the service executed it
	refused     mishap = "503"          // the service did not execute it
	late503     mishap = "late 503"     // the service executed it
	killBefore  mishap = "kill before"  // the process is killed, and the service does not see the request
	killAfter   mishap = "kill after"   // the process is killed, and the service executed it
	unknown     mishap = "unknown host" // the service does not see it, and the call may fail
	denied      mishap = "403"          // the service refuses it, unless it is a DELETE, and the call may fail
	written     mishap = "written"      // before it, another client writes the destination
)

var mishaps = []mishap{lostRequest, lostReply, refused, late503, killBefore, killAfter, unknown, denied, written}

// partsWalk sends one file in parts, in as many calls as necessary. Mishaps happen to
// some of its requests, which are counted over all calls.
type partsWalk struct {
	t        *testing.T
	way      upload.JoinBy
	size     int64 // of a part
	net      http.RoundTripper
	srv      *fakegcs.Server
	store    *memoryStore
	mishaps  map[int]mishap
	kill     func() // kills the process that is running
	requests []string

	killed      bool // the process of the last call was killed
	mayFail     bool // an error of the last call is allowed
	composed    bool // the object was made
	overwritten bool // another client then replaced the object

	mu sync.Mutex // one request at a time
}

// TestParallelWalk sends a file in parts with every mishap at every request (CI), and
// with pairs of mishaps at pairs of requests: every second pair by compose, and every
// fifth by multipart, whose parts are large. Afterwards the object is correct, the
// service has received each byte once, and nothing is left.
func TestParallelWalk(t *testing.T) {
	t.Parallel()
	every := testsize.Full(1, 2)
	if testing.Short() {
		every = 16
	}
	for _, c := range []struct {
		way     upload.JoinBy
		content []byte
		every   int // one pair of this many
	}{
		{upload.ByCompose, data(2*q + 1), testsize.Full(testsize.FullOnce(2, 60), 150)},
		{upload.ByMultipart, data(session.MultipartMinPart + 1), testsize.Full(testsize.FullOnce(5, 60), 150)},
	} {
		var uploads atomic.Int64
		t.Cleanup(func() { t.Logf("way %d: %d uploads", c.way, uploads.Load()) })
		walk := func(t *testing.T, mishaps map[int]mishap) (requests int) {
			uploads.Add(1)
			return walkParts(t, c.way, c.content, mishaps)
		}
		last := walk(t, nil)
		for first := range last {
			for i, m := range mishaps {
				if (first+i)%every != 0 {
					continue
				}
				t.Run(fmt.Sprintf("way %d/%s at %d", c.way, m, first), func(t *testing.T) {
					t.Parallel()
					requests := walk(t, map[int]mishap{first: m})
					for second := first + 1; second < requests; second++ {
						for i, n := range mishaps {
							if (first+second+i)%c.every == 0 {
								walk(t, map[int]mishap{first: m, second: n})
							}
						}
					}
				})
			}
		}
	}
}

// walkParts sends a file with the mishaps, and returns the number of requests.
func walkParts(t *testing.T, way upload.JoinBy, content []byte, mishaps map[int]mishap) (requests int) {
	synctest.Test(t, func(t *testing.T) {
		// The ETag of a part of a multipart upload is its MD5.
		srv, client, stop := upload.ServeBucket(t, &fakegcs.Options{NoMD5: way == upload.ByCompose})
		defer stop()
		size := int64(q)
		if way == upload.ByMultipart {
			size = session.MultipartMinPart
		}
		w := &partsWalk{t: t, way: way, size: size, net: client.Transport, srv: srv, store: newMemoryStore(), mishaps: mishaps}
		w.run(content)
		requests = len(w.requests)
		if t.Failed() {
			t.Fatalf("%v:\n%s", mishaps, strings.Join(w.requests, "\n"))
		}
	})
	return requests
}

// run calls until the object exists.
func (w *partsWalk) run(content []byte) {
	cut := int64(0) // calls that failed and may have cut a request with data
	for again := true; again; {
		w.killed, w.mayFail = false, false
		err := w.call(content)
		if err != nil && !w.killed && !w.mayFail {
			w.t.Error(err)
			return
		}
		again = w.killed || err != nil
		if err != nil && !w.killed {
			cut++
		}
	}
	if got := w.object("obj"); !bytes.Equal(got, content) && !(w.overwritten && string(got) == foreign) {
		w.t.Errorf("the object has %d bytes, and differs from the source", len(got))
	}
	// If another client replaced the object after the compose, a process that did not see
	// the compose uploads it again.
	most := int64(len(content)) + cut*w.size
	if received := w.received(); (received < int64(len(content)) || received > most) && !w.overwritten {
		w.t.Errorf("the service received %d bytes of parts, want %d to %d", received, len(content), most)
	}
	if n := len(w.store.tokens); n != 0 {
		w.t.Errorf("%d uploads are saved", n)
	}
	world := &world{t: w.t, srv: w.srv, http: &http.Client{Transport: w.net}}
	world.wantNoParts()
	world.wantNoLeftovers()
}

// call uploads the file in a new process.
func (w *partsWalk) call(content []byte) error {
	ctx, kill := context.WithCancel(w.t.Context())
	defer kill()
	store := &process{Store: w.store}
	w.kill = func() {
		w.killed = true
		store.dead.Store(true)
		kill()
	}
	client := &http.Client{Transport: roundTrip(func(req *http.Request) (*http.Response, error) {
		return w.roundTrip(store, req)
	})}
	up, err := upload.New(client, &upload.Options{Endpoint: "http://gcs.test", Store: store, ChunkSize: q, Parallel: upload.InParts(2, q).By(w.way)})
	if err != nil {
		w.t.Fatal(err)
	}
	_, err = up.ReaderAt(ctx, bytes.NewReader(content), int64(len(content)), "v1", spec)
	return err
}

func (w *partsWalk) roundTrip(p *process, req *http.Request) (*http.Response, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p.dead.Load() {
		return nil, errDead
	}
	n := len(w.requests)
	m := w.mishaps[n]
	if m == denied && req.Method == http.MethodDelete {
		m = "" // otherwise the service would keep objects that cannot be deleted
	}
	w.requests = append(w.requests, fmt.Sprintf("%3d %s %s %s %s", n, req.Method, req.URL.Path, req.Header.Get("Content-Range"), m))
	switch m {
	case lostRequest, refused, killBefore, unknown, denied:
		if req.Body != nil {
			_ = req.Body.Close()
		}
	case written:
		w.writeDestination()
		w.overwritten = w.composed
	}
	switch m {
	case lostRequest:
		return nil, errReset
	case refused:
		return reply(req, http.StatusServiceUnavailable), nil
	case denied:
		w.mayFail = true
		return reply(req, http.StatusForbidden), nil
	case killBefore:
		w.kill()
		return nil, errDead
	case unknown:
		w.mayFail = true
		return nil, &net.DNSError{Err: "no such host", Name: req.URL.Hostname(), IsNotFound: true}
	}
	r, err := w.net.RoundTrip(req)
	w.composed = w.composed || w.joins(req) && err == nil && r.StatusCode == http.StatusOK
	if err != nil || m == "" || m == written {
		return r, err
	}
	_, _ = io.Copy(io.Discard, r.Body)
	_ = r.Body.Close()
	switch m {
	case late503:
		return reply(req, http.StatusServiceUnavailable), nil
	case killAfter:
		w.kill()
		return nil, errDead
	}
	return nil, errReset
}

// joins reports whether a request makes the object.
func (w *partsWalk) joins(req *http.Request) bool {
	if w.way == upload.ByMultipart {
		return req.Method == http.MethodPost && req.URL.Query().Has("uploadId")
	}
	return strings.HasSuffix(req.URL.Path, "/compose")
}

var errReset = &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}

// reply returns a reply of the service without a body.
func reply(req *http.Request, status int) *http.Response {
	return &http.Response{
		Status: http.StatusText(status), StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"X-Guploader-Uploadid": {"x"}}, Body: http.NoBody, Request: req,
	}
}

// foreign is the content that another client writes.
const foreign = "foreign"

// writeDestination replaces the object, like another client.
func (w *partsWalk) writeDestination() {
	req, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, "http://gcs.test/upload/storage/v1/b/bkt/o?uploadType=media&name=obj", strings.NewReader(foreign))
	if err != nil {
		w.t.Fatal(err)
	}
	r, err := w.net.RoundTrip(req)
	if err != nil || r.StatusCode != http.StatusOK {
		w.t.Fatal(r, err)
	}
	_ = r.Body.Close()
}

// object returns the bytes of an object.
func (w *partsWalk) object(name string) []byte {
	req, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, "http://gcs.test/storage/v1/b/bkt/o/"+name+"?alt=media", nil)
	if err != nil {
		w.t.Fatal(err)
	}
	r, err := w.net.RoundTrip(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return b
}

// received returns how many bytes of parts the service has received.
func (w *partsWalk) received() (n int64) {
	for _, r := range w.srv.Requests() {
		if r.Op == fakegcs.OpPut || r.Op == fakegcs.OpFinalize || r.Op == fakegcs.OpPartsPut {
			n += r.Received
		}
	}
	return n
}

// memoryStore keeps the saved form of Tokens.
type memoryStore struct {
	mu     sync.Mutex
	tokens map[string][]byte
}

func newMemoryStore() *memoryStore { return &memoryStore{tokens: map[string][]byte{}} }

func (s *memoryStore) Load(_ context.Context, id string) (*session.Token, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, ok := s.tokens[id]
	if !ok {
		return nil, session.ErrNoToken
	}
	return session.Decode(b)
}

func (s *memoryStore) Save(_ context.Context, t *session.Token) error {
	b, err := session.Encode(t)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokens[t.ID] = b
	return nil
}

func (s *memoryStore) List(context.Context) (ids []string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := range s.tokens {
		ids = append(ids, id)
	}
	return ids, nil
}

func (s *memoryStore) Delete(_ context.Context, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.tokens, id)
	return nil
}

func (s *memoryStore) Lock(context.Context, string) (func(), error) { return func() {}, nil }
