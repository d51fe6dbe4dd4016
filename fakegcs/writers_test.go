package fakegcs_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"gcsup/fakegcs"
	"gcsup/internal/require"
)

// slowWriter is an upload of which a part has arrived.
type slowWriter struct {
	rest *io.PipeWriter
	done chan error
}

// startSlow starts a request with a body of n bytes, and returns when most of them have
// left the client.
func startSlow(t testing.TB, client *http.Client, method, target string, n int64, headers ...string) *slowWriter {
	t.Helper()
	r, w := io.Pipe()
	req, err := http.NewRequest(method, target, r)
	require.NoError(t, err)
	req.ContentLength = n
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	slow := &slowWriter{rest: w, done: make(chan error, 1)}
	go func() {
		resp, err := client.Do(req)
		if err == nil {
			_, _ = io.Copy(io.Discard, resp.Body)
			if resp.Body.Close(); resp.StatusCode != 200 {
				err = fmt.Errorf("%s %s: %s", method, target, resp.Status)
			}
		}
		r.CloseWithError(err) // the writer must not wait for a request that ended
		slow.done <- err
	}()
	if _, err := io.CopyN(w, zeroReader{}, n-1); err != nil {
		t.Fatalf("%s %s: %v, %v", method, target, err, <-slow.done)
	}
	return slow
}

// finish sends the last byte.
func (s *slowWriter) finish() error {
	_, _ = s.rest.Write([]byte{0})
	_ = s.rest.Close()
	return <-s.done
}

// A writer whose body does not end makes no other request to its bucket wait, in any way to
// upload. It needs 16 MiB, which the buffers of a connection cannot take.
func TestSlowWriters(t *testing.T) {
	for name, opts := range map[string]fakegcs.Options{"memory": {}, "temporary file": {Memory: -1}, "directory": {Dir: "+"}} {
		t.Run(name, func(t *testing.T) {
			tempDir(t)
			if opts.Dir != "" {
				opts.Dir = t.TempDir()
			}
			w := newWorld(t, &opts)
			w.do("PUT", "/bkt/old", numbered(1, 8<<10))
			const n = 16 << 20
			upload := w.do("POST", "/bkt/parts?uploads", nil).body
			_, id, _ := strings.Cut(upload, "<UploadId>")
			id, _, _ = strings.Cut(id, "</UploadId>")
			slow := []*slowWriter{
				startSlow(t, w.client, "PUT", w.url+"/bkt/xml", n),
				startSlow(t, w.client, "POST", w.url+"/upload/storage/v1/b/bkt/o?uploadType=media&name=media", n),
				startSlow(t, w.client, "PUT", w.start("session"), n),
				startSlow(t, w.client, "PUT", w.url+"/bkt/parts?partNumber=1&uploadId="+id, n),
			}
			for _, request := range []struct {
				method, target string
				body           []byte
				status         int
			}{
				{"PUT", "/bkt/new", []byte("new"), 200},
				{"PUT", "/bkt/xml", []byte("a newer one"), 200},
				{"GET", "/bkt/old", nil, 200},
				{"GET", "/storage/v1/b/bkt/o", nil, 200},
				{"PATCH", "/storage/v1/b/bkt/o/old", []byte(`{"metadata":{"a":"b"}}`), 200},
				{"POST", "/storage/v1/b/bkt/o/composed/compose", []byte(`{"sourceObjects":[{"name":"old"},{"name":"new"}]}`), 200},
				{"POST", "/storage/v1/b/bkt/o/old/rewriteTo/b/bkt/o/copy", nil, 200},
				{"DELETE", "/bkt/old", nil, 204},
				{"GET", "/_fakegcs/", nil, 200},
			} {
				w.want(request.status, "", request.method, request.target, request.body)
			}
			for _, s := range slow {
				if err := s.finish(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// BenchmarkWriters uploads objects of 16 KiB to one bucket, with 1, 2 and 8 writers at a
// time, and with 8 beside an upload that never ends. If writers waited for each other, the
// last one would not end, and 8 writers would be as fast as one.
func BenchmarkWriters(b *testing.B) {
	payload := numbered(1, 16<<10)
	for _, storage := range []string{"memory", "temporary file", "directory"} {
		for _, test := range []struct {
			name    string
			writers int
			slow    bool
		}{{"1", 1, false}, {"2", 2, false}, {"8", 8, false}, {"8 beside a slow one", 8, true}} {
			b.Run(storage+"/"+test.name, func(b *testing.B) {
				opts := fakegcs.Options{NoMD5: true, KeepRequests: -1, Buckets: []fakegcs.Bucket{{Name: "bkt"}}}
				switch storage {
				case "directory":
					opts.Dir = b.TempDir()
				case "temporary file":
					opts.Memory = -1
				}
				gcs, err := fakegcs.New(&opts)
				require.NoError(b, err)
				defer gcs.Close()
				srv := httptest.NewServer(gcs)
				defer srv.Close()
				client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: test.writers}}
				defer client.CloseIdleConnections()
				if test.slow {
					slow := startSlow(b, client, "PUT", srv.URL+"/bkt/slow", 16<<20)
					defer slow.finish()
				}
				b.SetBytes(int64(len(payload)))
				b.ReportAllocs()
				b.ResetTimer()
				var next atomic.Int64
				var group sync.WaitGroup
				for range test.writers {
					group.Go(func() {
						for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
							req, err := http.NewRequest("PUT", fmt.Sprintf("%s/bkt/o%d", srv.URL, i%1000), bytes.NewReader(payload))
							if err != nil {
								b.Error(err)
								return
							}
							resp, err := client.Do(req)
							if err != nil {
								b.Error(err)
								return
							}
							_, _ = io.Copy(io.Discard, resp.Body)
							if resp.Body.Close(); resp.StatusCode != 200 {
								b.Error(resp.Status)
								return
							}
						}
					})
				}
				group.Wait()
			})
		}
	}
}
