package upload_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gcsup/chunk"
	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/checksum"
	"gcsup/internal/require"
	"gcsup/internal/sourcefile"
	"gcsup/internal/testsize"
	"gcsup/session/state"
	"gcsup/upload"
)

const (
	kib = int64(1) << 10
	mib = int64(1) << 20
	gib = int64(1) << 30
)

const q = int64(chunk.Granularity)

// world is a Cloud Storage server, a network to it, a directory of sources and a
// state directory. In a synctest bubble its time is virtual.
type world struct {
	t      *testing.T
	srv    *fakegcs.Server
	http   *http.Client
	store  *state.Dir
	dir    string // of the sources
	state  string // the directory of store
	slow   bool   // uploaders know that a single connection is slow
	close  func()
	mu     sync.Mutex
	events []upload.Event
}

// inBubble runs f in a world of virtual time. The server ignores idempotency tokens, because
// no upload may depend on them. It computes no MD5, because that costs more than the rest of
// the server. Tests that need either call inBubbleWithMD5.
func inBubble(t *testing.T, opts *fakegcs.Options, f func(w *world)) {
	t.Helper()
	var o fakegcs.Options
	if opts != nil {
		o = *opts
	}
	o.NoIdempotencyTokens, o.NoMD5 = true, true
	inBubbleWithMD5(t, &o, f)
}

// inBubbleWithMD5 is inBubble, but changes nothing in opts.
func inBubbleWithMD5(t *testing.T, opts *fakegcs.Options, f func(w *world)) {
	t.Helper()
	dir := testsize.DiskDir(t)
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, dir, opts)
		defer w.close()
		f(w)
	})
}

// newWorld makes a world.
func newWorld(t *testing.T, dir string, opts *fakegcs.Options) *world {
	t.Helper()
	srv, client, stop := upload.ServeBucket(t, opts)
	// Sources are on a disk: gcsup does not rely on the times of files in memory.
	stateDir := filepath.Join(testsize.MemDir(t), "state")
	store, err := state.OpenDir(stateDir)
	require.NoError(t, err)
	return &world{t: t, srv: srv, http: client, store: store, dir: dir, state: stateDir, close: func() {
		stop()
		_ = store.Close()
	}}
}

// uploader returns an Uploader for this world. The functions change its options.
func (w *world) uploader(with ...func(*upload.Options)) *upload.Uploader {
	w.t.Helper()
	opts := &upload.Options{Endpoint: "http://gcs.test", Store: w.store, Observer: func(e upload.Event) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.events = append(w.events, e)
	}}
	for _, f := range with {
		f(opts)
	}
	up, err := upload.New(w.http, opts)
	require.NoError(w.t, err)
	if w.slow {
		upload.OneIsSlow(up)
	}
	upload.SetGzipLevel(up, gzip.HuffmanOnly) // ten times as fast as the default
	return up
}

// addFaults adds faults to the server's plan.
func (w *world) addFaults(faults ...faults.Fault) {
	w.t.Helper()
	require.NoError(w.t, w.srv.AddFaults(faults...))
}

// saw returns the number of events of a kind.
func (w *world) saw(kind upload.EventKind) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.events {
		if e.Kind == kind {
			n++
		}
	}
	return n
}

// shared holds the bytes of most sources, because making new bytes for each test took
// most of the time. No test may change it.
var shared = random(24 << 20)

// skipShort skips a test with -short. Most tests of uploads of many MiB are slow.
func skipShort(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("sends many MiB, or many requests")
	}
}

// data returns size pseudo-random bytes, which the caller must not change.
func data(size int64) []byte {
	if size > int64(len(shared)) {
		return random(size)
	}
	return shared[:size:size]
}

// random makes size pseudo-random bytes. Another size gives other bytes.
func random(size int64) []byte {
	b := make([]byte, size)
	key := [32]byte{byte(size), byte(size >> 8), byte(size >> 16)}
	if size <= 24*mib {
		_, _ = rand.NewChaCha8(key).Read(b)
	} else if fast, err := aes.NewCipher(key[:]); err == nil {
		cipher.NewCTR(fast, key[:aes.BlockSize]).XORKeyStream(b, b)
	}
	return b
}

// flipped returns a copy of content in which one bit at each offset differs.
func flipped(content []byte, offsets ...int64) []byte {
	b := bytes.Clone(content)
	for _, i := range offsets {
		b[i] ^= 1
	}
	return b
}

// TestMain runs the tests, and then checks that none changed the shared bytes.
func TestMain(m *testing.M) {
	testsize.Overlap()
	flag.Parse()
	sum := checksum.Update(0, shared)
	code := m.Run()
	if checksum.Update(0, shared) != sum {
		fmt.Fprintln(os.Stderr, "a test changed the shared bytes of data")
		code = 1
	}
	os.Exit(code)
}

// file writes content to a file of the world.
func (w *world) file(content []byte) string {
	w.t.Helper()
	path := filepath.Join(w.dir, "source")
	require.NoError(w.t, os.WriteFile(path, content, 0o600))
	w.letPass(path)
	return path
}

// letPass waits until the file system's clock has passed the times of the file. That
// clock is not virtual. An upload then does not wait for the file, and does not read
// it twice.
func (w *world) letPass(path string) {
	w.t.Helper()
	src, err := sourcefile.Open(path)
	require.NoError(w.t, err)
	defer src.Close()
	id, err := src.Identity()
	require.NoError(w.t, err)
	if runtime.GOOS == "windows" {
		// On this system a new file stays racy for a minute, but has no change time.
		old := time.Unix(0, id.ModTimeNS).Add(-time.Hour)
		require.NoError(w.t, os.Chtimes(path, time.Time{}, old))
		return
	}
	for src.Racy(id) {
		<-realPauses
	}
}

// realPauses gets a value after each real half millisecond, even for a receiver with
// virtual time.
var realPauses = make(chan struct{})

func init() {
	go func() {
		for {
			time.Sleep(time.Millisecond / 2)
			realPauses <- struct{}{}
		}
	}()
}

// wantObject fails unless the object at bkt/name is exactly content. With the race detector, it relies on the CRC32C
// that the server has computed: the detector makes a copy of all bytes expensive.
func (w *world) wantObject(name string, content []byte) {
	w.t.Helper()
	if testsize.Raced(1, 0) == 1 {
		o, ok := w.srv.Object("bkt", name)
		if !ok || o.Size != int64(len(content)) || uint32(o.CRC32C) != checksum.Update(0, content) {
			w.t.Errorf("object %s: %t, %+v, which is not the source's content", name, ok, o)
		}
		return
	}
	got, err := w.srv.ReadObject("bkt", name)
	if err != nil {
		w.t.Errorf("read %s: %v", name, err)
		return
	}
	if !bytes.Equal(got, content) {
		w.t.Errorf("object %s has %d bytes that are not the source's %d", name, len(got), len(content))
	}
}

func (w *world) wantNoObject(name string) {
	w.t.Helper()
	if o, ok := w.srv.Object("bkt", name); ok {
		w.t.Errorf("there is an object %s of %d bytes, want none", name, o.Size)
	}
}

// wantSaved fails unless that many uploads are saved.
func (w *world) wantSaved(n int) {
	w.t.Helper()
	ids, err := w.store.List(context.Background())
	require.NoError(w.t, err)
	if len(ids) != n {
		w.t.Errorf("%d uploads are saved, want %d", len(ids), n)
	}
}

// done stops the test if a call failed.
func (w *world) done(_ any, err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatalf("%v\n%s", err, w.trace())
	}
}

// fails returns a function that gets the results of a call in any goroutine, and fails the test unless the error is want.
func (w *world) fails(want error) func(any, error) {
	return func(_ any, err error) {
		w.t.Helper()
		w.wantError(err, want)
	}
}

// wantError fails the test unless err is want.
func (w *world) wantError(err, want error) {
	w.t.Helper()
	if !errors.Is(err, want) {
		w.t.Errorf("error = %v, want %v", err, want)
	}
}

// trace lists the requests that the server received, one line each: operation, range
// and status.
func (w *world) trace() string {
	var b strings.Builder
	for _, r := range w.srv.Requests() {
		fmt.Fprintf(&b, "%s %s -> %d", r.Op, strings.TrimPrefix(r.ContentRange, "bytes "), r.Status)
		if r.Range != "" {
			fmt.Fprintf(&b, " %s", r.Range)
		}
		if r.Fault != "" {
			fmt.Fprintf(&b, " (%s)", r.Fault)
		}
		b.WriteString("\n")
	}
	return b.String()
}

var spec = upload.Spec{Bucket: "bkt", Object: "obj"}

// large is the size of a file that needs two data requests in a session with
// largeChunks: one for all bytes except the last 256 KiB, and one for those. Without
// options, only a file of more than 8 MiB gets a session.
const large = 3 * mib

func largeChunks(o *upload.Options) { o.ChunkSize = large - q }

// resumable makes even small files use a session.
func resumable(o *upload.Options) { o.ChunkSize = q }

// pieces returns a reader of unknown length that returns pieces of odd sizes.
func pieces(content []byte) io.Reader { return &pieceReader{content, 1} }

type pieceReader struct {
	rest []byte
	n    int
}

func (p *pieceReader) Read(b []byte) (int, error) {
	if len(p.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(b, p.rest[:min(p.n, len(p.rest))])
	p.rest = p.rest[n:]
	p.n = p.n*3%100_003 + 1
	return n, nil
}

// withCall returns up.With(o), whose options must be valid.
func withCall(up *upload.Uploader, o upload.CallOptions) *upload.Uploader {
	own, err := up.With(o)
	if err != nil {
		panic(err)
	}
	return own
}
