package fakegcs_test

import (
	"fmt"
	"io"
	"net/http"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"gcsup/fakegcs"
)

// heap returns the bytes in use after garbage collection. Two collections empty the
// pools.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// zeros is a reader of n zeros.
func zeros(n int64) io.Reader { return io.LimitReader(zeroReader{}, n) }

type zeroReader struct{}

func (zeroReader) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// sendZeros sends a request with n zeros, which need no memory, and fails unless the reply has the status.
func (w *world) sendZeros(status int, n int64, method, target string, headers ...string) {
	w.Helper()
	req, err := http.NewRequest(method, target, zeros(n))
	if err != nil {
		w.Fatal(err)
	}
	req.ContentLength = n
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	resp, err := w.client.Do(req)
	if err != nil || resp.StatusCode != status {
		w.Fatalf("%s %s: %v, %v", method, target, resp, err)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
}

// An object's memory is freed with the object, no matter how it was made and removed.
// A finished session still returns its object, but not its bytes.
func TestDeletedObjectsHoldNoMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("measures memory")
	}
	const size = 64 << 20
	w := newWorld(t, &fakegcs.Options{NoMD5: true})
	uri := w.start("session")
	ways := map[string]func(){
		"session": func() { w.sendZeros(200, size, "PUT", uri) },
		"media": func() {
			w.sendZeros(200, size, "POST", w.url+"/upload/storage/v1/b/bkt/o?uploadType=media&name=media")
		},
		"xml":      func() { w.sendZeros(200, size, "PUT", w.url+"/bkt/xml") },
		"replaced": func() { w.sendZeros(200, size, "PUT", w.url+"/bkt/x"); w.do("PUT", "/bkt/x", nil) },
		"composed": func() {
			w.sendZeros(200, size, "PUT", w.url+"/bkt/part")
			w.do("POST", "/storage/v1/b/bkt/o/composed/compose", []byte(`{"sourceObjects":[{"name":"part"},{"name":"part"}]}`))
			w.do("DELETE", "/bkt/part", nil)
		},
		"canceled": func() {
			uri := w.start("canceled")
			w.sendZeros(308, size, "PUT", uri, chunkRange(0, size, "*"))
			w.do("DELETE", uri, nil)
		},
	}
	before := heap()
	for name, upload := range ways {
		upload()
		w.do("GET", "/bkt/"+name, nil, "Range: bytes=0-9")
		w.do("DELETE", "/bkt/"+name, nil)
		if held := heap() - before; held > size/4 {
			t.Errorf("%s: %d MiB are in use after the object was removed", name, held>>20)
			before += held
		}
	}
	w.want(200, fmt.Sprintf(`"size": "%d"`, size), "PUT", uri, nil, "Content-Range: bytes */*")
}

// The memory of a large object returns to the system when the object is deleted, even
// if nothing else runs the garbage collector.
func TestDeletedObjectsReturnMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("measures memory")
	}
	const size = 256 << 20
	resident := func() int64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapSys - m.HeapReleased)
	}
	w := newWorld(t, &fakegcs.Options{NoMD5: true})
	heap()
	debug.FreeOSMemory()
	before := resident()
	w.sendZeros(200, size, "PUT", w.url+"/bkt/x")
	if held := resident() - before; held < size/10*9 { // the heap may have had free space before
		t.Fatalf("an object of %d bytes uses %d", size, held)
	}
	w.do("DELETE", "/bkt/x", nil)
	if err := w.gcs.Close(); err != nil { // waits for the collection
		t.Fatal(err)
	}
	if held := resident() - before; held > size/4 {
		t.Errorf("%d MiB are resident after the object was deleted", held>>20)
	}
}
