package fakegcs_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/require"
	"gcsup/internal/testprocess"
	"gcsup/internal/testsize"
)

// TestMain is the emulator process that the crash test kills.
func TestMain(m *testing.M) {
	if dir := os.Getenv("FAKEGCS_TEST_DIR"); dir != "" {
		opts := &fakegcs.Options{Dir: dir, CreateBuckets: true}
		switch os.Getenv("FAKEGCS_TEST_MODE") {
		case "discard":
			opts.Dir, opts.Discard, opts.NoMD5 = "", true, true
		case "directory":
			opts.NoMD5 = true
		}
		gcs, err := fakegcs.New(opts)
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Printf("http://%s\n", ln.Addr())
		panic(http.Serve(ln, gcs))
	}
	os.Exit(m.Run())
}

// startEmulator starts the emulator process. The end of the test kills it.
func startEmulator(t testing.TB, dir, mode string) (url string, p *testprocess.Process) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "FAKEGCS_TEST_DIR="+dir, "FAKEGCS_TEST_MODE="+mode)
	p = testprocess.Start(t, cmd)
	return p.Await(`(http://\S+)\n`)[1], p
}

// A server that is killed at random moments of an upload loses no finished object and
// no committed byte.
func TestKilledServer(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("sends many MiB, or many requests")
	}
	seed := testsize.Seed(t)
	rnd := rand.New(rand.NewPCG(seed, 0))
	dir := t.TempDir()
	content := data(24*q + 99)
	url, emulator := startEmulator(t, dir, "")
	w := &world{T: t, url: url, client: &http.Client{}}
	w.want(200, "", "POST", "/upload/storage/v1/b/bkt/o?uploadType=media&name=before", content[:q+1])
	uri := w.start("x")
	session := func() string { return w.moved(uri) }
	committed := 0
	for round := range 5 {
		// Send one request slowly enough for a kill in the middle.
		ctx, cancel := context.WithCancel(t.Context())
		killed := make(chan bool)
		go func() {
			defer close(killed)
			time.Sleep(time.Duration(rnd.IntN(30)) * time.Millisecond)
			emulator.Kill()
			cancel()
		}()
		to := committed + 4*q
		req, _ := http.NewRequestWithContext(ctx, "PUT", session(), &slowReader{data: content[committed:to]})
		req.ContentLength = int64(4 * q)
		req.Header.Set("Content-Range", strings.TrimPrefix(chunkRange(committed, to, "*"), "Content-Range: "))
		low := 0
		if resp, err := w.client.Do(req); err == nil {
			low = 4 * q
			resp.Body.Close()
		}
		<-killed
		url, emulator = startEmulator(t, dir, "")
		w.url = url
		var last int
		got := w.committed(session())
		if got != "" {
			fmt.Sscanf(got, "bytes=0-%d", &last)
			last++
		}
		if last%q != 0 || last < committed+low || last > to {
			t.Fatalf("round %d: %d bytes were committed, now %q", round, committed, got)
		}
		committed = last
	}
	t.Logf("%d bytes survived", committed)
	w.want(200, "", "PUT", session(), content[committed:], chunkRange(committed, len(content), fmt.Sprint(len(content))), "X-Goog-Hash: crc32c="+crc(content))
	emulator.Kill()
	url, emulator = startEmulator(t, dir, "")
	w.url = url
	w.want(200, "", "PUT", session(), nil, "Content-Range: bytes */*")
	for name, want := range map[string][]byte{"x": content, "before": content[:q+1]} {
		a := w.do("GET", "/storage/v1/b/bkt/o/"+name+"?alt=media", nil)
		if !bytes.Equal([]byte(a.body), want) {
			t.Errorf("object %s has %d bytes", name, len(a.body))
		}
	}
}

type slowReader struct{ data []byte }

func (r *slowReader) Read(p []byte) (int, error) {
	if len(r.data) == 0 {
		return 0, io.EOF
	}
	time.Sleep(time.Millisecond)
	n := copy(p[:min(len(p), 50_000)], r.data)
	r.data = r.data[n:]
	return n, nil
}

// After a restart, the server has the same objects and sessions, and nothing else.
func TestRestart(t *testing.T) {
	dir := t.TempDir()
	gcs, err := fakegcs.New(&fakegcs.Options{Dir: dir})
	require.NoError(t, err)
	if _, err := fakegcs.New(&fakegcs.Options{Dir: dir}); !errors.Is(err, fakegcs.ErrInUse) {
		t.Errorf("second server on the directory: %v", err)
	}
	gcs.Close()

	w := newWorld(t, &fakegcs.Options{Dir: dir})
	names := []string{"a", "a/b", "../../../etc/passwd", strings.Repeat("ü", 512), "con", "x\x00y"}
	for _, name := range names {
		w.insert(name, "first of "+name)
		w.insert(name, "content of "+name)
	}
	uri := w.start("unaligned")
	w.put(uri, 0, q, "*")
	w.gcs.AddFaults(faults.Fault{Do: faults.Action{Effect: faults.EffectStatusAfter, Status: 503, Bytes: q + 77}})
	w.put(uri, q, 2*q, "*")
	for _, end := range []string{"canceled", "dead"} {
		uri := w.start(end)
		if end == "canceled" {
			w.do("DELETE", uri, nil)
		} else {
			w.do("PUT", uri, data(9), "X-Goog-Hash: crc32c=AAAAAA==")
		}
	}
	blobs, _ := filepath.Glob(filepath.Join(dir, "blobs", "*"))
	if len(blobs) != len(names)+1 {
		t.Errorf("%d blobs in the directory, want one per object and unfinished upload: %d", len(blobs), len(names)+1)
	}
	w2 := w.again(dir, func() {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "blobs", "orphan"), nil, 0o600))
	})
	for _, name := range names {
		if got, err := w2.gcs.ReadObject("bkt", name); string(got) != "content of "+name || err != nil {
			t.Errorf("%q has %q, %v", name, got, err)
		}
	}
	uri = w2.moved(uri)
	if got := w2.committed(uri); got != fmt.Sprintf("bytes=0-%d", q+76) {
		t.Errorf("unaligned upload: committed %q", got)
	}
	w2.want(200, crc(data(2*q)), "PUT", uri, data(2 * q)[q+77:], chunkRange(q+77, 2*q, "524288"))
	if _, err := os.Stat(filepath.Join(dir, "blobs", "orphan")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("an orphaned blob was left: %v", err)
	}
}

// insert uploads an object in one request and returns its resource.
func (w *world) insert(name, content string, headers ...string) map[string]any {
	w.Helper()
	a := w.do("POST", "/upload/storage/v1/b/bkt/o?uploadType=media&name="+escape(name), []byte(content), headers...)
	if a.StatusCode != 200 {
		w.Fatalf("insert %q: %d %s", name, a.StatusCode, a.body)
	}
	return a.json(w)
}

// If the directory cannot be written, the request returns 500. No committed byte is
// lost, and the upload can continue later.
func TestDirectoryFails(t *testing.T) {
	dir := t.TempDir()
	w := newWorld(t, &fakegcs.Options{Dir: dir})
	uri := w.start("x")
	w.put(uri, 0, q, "*")
	blobs, away := filepath.Join(dir, "blobs"), filepath.Join(dir, "away")
	buckets, gone := filepath.Join(dir, "buckets"), filepath.Join(dir, "gone")
	rename(t, blobs, away)
	w.chunk(500, uri, q, 2*q, "*")
	w.want(500, "", "POST", "/upload/storage/v1/b/bkt/o?uploadType=media&name=y", []byte("y"))
	if got := w.committed(uri); got != "bytes=0-262143" {
		t.Errorf("committed %q", got)
	}
	rename(t, away, blobs)
	rename(t, buckets, gone)
	w.chunk(500, uri, q, 2*q, fmt.Sprint(2*q))
	if _, ok := w.gcs.Object("bkt", "x"); ok {
		t.Error("the object exists")
	}
	rename(t, gone, buckets)
	w.want(200, "", "PUT", uri, nil, "Content-Range: bytes */524288", "X-Goog-Hash: crc32c="+crc(data(2*q)))
	w.holds("x", data(2*q))
}

func rename(t *testing.T, from, to string) {
	t.Helper()
	require.NoError(t, os.Rename(from, to))
}

// A session stays active if its cancellation cannot be written. It is finished if its
// object exists, even if its own record cannot be written and the server restarts.
func TestSessionEndFails(t *testing.T) {
	dir := t.TempDir()
	var log bytes.Buffer
	w := newWorld(t, &fakegcs.Options{Dir: dir, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	sessions, away := filepath.Join(dir, "sessions"), filepath.Join(dir, "away")
	open, done := w.start("open"), w.start("done")
	w.put(open, 0, q, "*")
	rename(t, sessions, away)
	w.want(500, "", "DELETE", open, nil)
	w.want(200, "", "PUT", done, nil, "Content-Range: bytes */0")
	if _, secret, _ := strings.Cut(done, "upload_id="); !strings.Contains(log.String(), "save session: ") || strings.Contains(log.String(), secret) {
		t.Errorf("log without the reason, or with a session URI: %s", log.String())
	}
	rename(t, away, sessions)
	if got := w.committed(open); got != "bytes=0-262143" {
		t.Errorf("after a cancellation that failed: %q", got)
	}
	w = w.again(dir)
	w.want(200, "", "PUT", w.moved(done), nil, "Content-Range: bytes */*")
	open = w.moved(open)
	w.want(499, "", "DELETE", open, nil)
}
