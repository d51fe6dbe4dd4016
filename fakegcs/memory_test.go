package fakegcs_test

import (
	"fmt"
	"io"
	"net/http"
	"runtime"
	"runtime/debug"
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

// An object's memory is freed with the object, no matter how it was made and removed.
// A finished session still returns its object, but not its bytes.
func TestDeletedObjectsHoldNoMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("measures memory")
	}
	const size = 64 << 20
	w := newWorld(t, &fakegcs.Options{NoMD5: true})
	send := func(method, target string, headers ...string) {
		t.Helper()
		req, err := http.NewRequest(method, target, zeros(size))
		if err != nil {
			t.Fatal(err)
		}
		req.ContentLength = size
		resp, err := w.client.Do(req)
		if err != nil || resp.StatusCode != 200 {
			t.Fatalf("%s %s: %v, %v", method, target, resp, err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	uri := w.start("session")
	ways := map[string]func(){
		"session":  func() { send("PUT", uri) },
		"media":    func() { send("POST", w.url+"/upload/storage/v1/b/bkt/o?uploadType=media&name=media") },
		"xml":      func() { send("PUT", w.url+"/bkt/xml") },
		"replaced": func() { send("PUT", w.url+"/bkt/x"); w.do("PUT", "/bkt/x", nil) },
		"composed": func() {
			send("PUT", w.url+"/bkt/part")
			w.do("POST", "/storage/v1/b/bkt/o/composed/compose", []byte(`{"sourceObjects":[{"name":"part"},{"name":"part"}]}`))
			w.do("DELETE", "/bkt/part", nil)
		},
		"canceled": func() {
			uri := w.start("canceled")
			req, _ := http.NewRequest("PUT", uri, zeros(size))
			req.ContentLength = size
			req.Header.Set("Content-Range", fmt.Sprintf("bytes 0-%d/*", size-1))
			if resp, err := w.client.Do(req); err != nil || resp.StatusCode != 308 {
				t.Fatalf("%v, %v", resp, err)
			}
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
	if a := w.do("PUT", uri, nil, "Content-Range: bytes */*"); a.StatusCode != 200 || a.json(t)["size"] != fmt.Sprint(size) {
		t.Errorf("the finished session: %d %s", a.StatusCode, a.body)
	}
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
	req, err := http.NewRequest("PUT", w.url+"/bkt/x", zeros(size))
	if err != nil {
		t.Fatal(err)
	}
	req.ContentLength = size
	resp, err := w.client.Do(req)
	if err != nil || resp.StatusCode != 200 {
		t.Fatalf("PUT: %v, %v", resp, err)
	}
	resp.Body.Close()
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
