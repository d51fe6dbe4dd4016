package fakegcs_test

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"gcsup/fakegcs"
	"gcsup/internal/require"
)

// tempDir makes an empty directory the one for temporary files.
func tempDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	t.Setenv("TMP", dir) // Windows
	return dir
}

// numbered returns the bytes of an object of n bytes that differs from others.
func numbered(i, n int) []byte { return bytes.Repeat([]byte(fmt.Sprintf("%08d", i)), n/8) }

// Bytes beyond the limit of the memory are in a file, those of open sessions included, and
// are read from there.
func TestMemoryLimit(t *testing.T) {
	if testing.Short() {
		t.Skip("measures memory")
	}
	dir := tempDir(t)
	const limit, n, size = 4 << 20, 400, 200 << 10
	w := newWorld(t, &fakegcs.Options{Memory: limit, NoMD5: true, KeepRequests: -1})
	w.do("PUT", "/bkt/warm", numbered(0, 8))
	before := heap()
	for i := range n {
		w.want(200, "", "PUT", fmt.Sprintf("/bkt/o%d", i), numbered(i, size))
	}
	uri := w.start("session")
	whole := numbered(n, 64*q)
	w.want(308, "", "PUT", uri, whole[:48*q], chunkRange(0, 48*q, "*"))
	w.client.CloseIdleConnections()
	held := heap() - before - int64(len(whole)) // the test's own copy
	t.Logf("%d KiB of memory for %d MiB", held>>10, (n*size+48*q)>>20)
	if held > limit+4<<20 {
		t.Errorf("%d MiB are in memory, want at most %d and the metadata", held>>20, limit>>20)
	}
	w.want(200, "", "PUT", uri, whole[48*q:], chunkRange(48*q, 64*q, fmt.Sprint(64*q)))
	for i := range n {
		w.holds(fmt.Sprint("o", i), numbered(i, size))
	}
	w.holds("session", whole)
	if a := w.do("GET", "/bkt/o399", nil, "Range: bytes=100003-100010"); a.body != string(numbered(399, size)[100003:100011]) {
		t.Errorf("range: %q", a.body)
	}
	w.do("POST", "/storage/v1/b/bkt/o/composed/compose", []byte(`{"sourceObjects":[{"name":"o1"},{"name":"o399"}]}`))
	w.do("DELETE", "/bkt/o399", nil)
	w.holds("composed", slices.Concat(numbered(1, size), numbered(399, size)))
	if err := w.gcs.Close(); err != nil {
		t.Error(err)
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) > 0 {
		t.Errorf("after Close, the directory for temporary files has %v, %v", list, err)
	}
}

// An upload gets 503 with the hints if its bytes do not fit. Objects, and the session of the
// upload, stay as they are, and the upload continues when there is space.
func checkNoSpace(t *testing.T, w *world, makeSpace func(), hints ...string) {
	t.Helper()
	uri := w.start("session")
	whole := numbered(1, 8*q)
	for _, hint := range hints {
		w.want(503, hint, "PUT", uri, whole)
		w.want(503, hint, "PUT", "/bkt/old", whole)
		w.want(503, hint, "POST", "/upload/storage/v1/b/bkt/o?uploadType=media&name=new", whole)
	}
	w.holds("old", numbered(7, 8<<10))
	w.want(404, "", "GET", "/bkt/new", nil)
	a := w.do("PUT", uri, nil, "Content-Range: bytes */*")
	if a.StatusCode != 308 {
		t.Fatalf("the session: %d %s", a.StatusCode, a.body)
	}
	var last int
	if r := a.Header.Get("Range"); r != "" {
		if _, err := fmt.Sscanf(r, "bytes=0-%d", &last); err != nil {
			t.Fatal(err)
		}
		last++
	}
	makeSpace()
	w.want(200, "", "PUT", uri, whole[last:], chunkRange(last, len(whole), fmt.Sprint(len(whole))))
	w.holds("session", whole)
}

func TestNoTemporaryDirectory(t *testing.T) {
	missing := filepath.Join(tempDir(t), "missing")
	t.Setenv("TMPDIR", missing)
	t.Setenv("TMP", missing)
	w := newWorld(t, &fakegcs.Options{Memory: 3*q/2 + 8<<10})
	w.do("PUT", "/bkt/old", numbered(7, 8<<10))
	checkNoSpace(t, w, func() {
		require.NoError(t, os.Mkdir(missing, 0o700))
	}, "--memory", "temporary file")
}

// Many writers, readers and deletions share a small memory.
func TestMemoryLimitConcurrently(t *testing.T) {
	tempDir(t)
	w := newWorld(t, &fakegcs.Options{Memory: 256 << 10, NoMD5: true})
	var group sync.WaitGroup
	for g := range 8 {
		group.Go(func() {
			for i := range 30 {
				name, want := fmt.Sprintf("/bkt/o%d", (g+i)%4), numbered(g*1000+i, 32<<10+i*8)
				w.want(200, "", "PUT", name, want)
				if a := w.do("GET", name, nil); a.StatusCode == 200 && a.body[:8] != a.body[len(a.body)-8:] {
					t.Errorf("%s has bytes of two objects", name)
				}
				if i%5 == 0 {
					if a := w.do("DELETE", name, nil); a.StatusCode != http.StatusNoContent && a.StatusCode != http.StatusNotFound {
						t.Errorf("DELETE: %d", a.StatusCode)
					}
				}
			}
		})
	}
	group.Wait()
}
