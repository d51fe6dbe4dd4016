package fakegcs_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/require"
	"gcsup/internal/testsize"
)

// drip starts a request whose body the caller writes, as slowly as it likes. Its status is 0 if it gets no reply.
func (w *world) drip(uri string, length int64, headers ...string) (body *io.PipeWriter, status <-chan int) {
	r, body := io.Pipe()
	done := make(chan int, 1)
	go func() {
		defer r.Close() // the caller must not wait for a request that ended
		req, _ := http.NewRequest("PUT", uri, r)
		req.ContentLength = length
		for _, h := range headers {
			name, value, _ := strings.Cut(h, ": ")
			req.Header.Set(name, value)
		}
		resp, err := w.client.Do(req)
		if err != nil {
			done <- 0
			return
		}
		resp.Body.Close()
		done <- resp.StatusCode
	}()
	return body, done
}

// A query soon returns the committed offset while another request sends slowly.
func TestQueryDuringLivePut(t *testing.T) {
	bubble(t, nil, func(w *world) {
		uri := w.start("x")
		body, done := w.drip(uri, 3*q)
		content := data(3 * q)
		body.Write(content[:q+1000])
		time.Sleep(time.Minute)
		start := time.Now()
		if got := w.committed(uri); got != "bytes=0-262143" {
			t.Errorf("query returned %q", got)
		}
		if d := time.Since(start); d > time.Second {
			t.Errorf("the query took %v", d)
		}
		body.Write(content[q+1000:])
		body.Close()
		if status := <-done; status != 200 {
			t.Errorf("the slow request: %d", status)
		}
	})
}

// A data request adopts the session from a request that has fallen silent.
func TestAdoptFromSilentRequest(t *testing.T) {
	bubble(t, nil, func(w *world) {
		uri := w.start("x")
		body, done := w.drip(uri, 3*q, chunkRange(0, 3*q, "*"))
		body.Write(bytes.Repeat([]byte{0xee}, q+1000))
		time.Sleep(time.Minute)
		if a := w.chunk(308, uri, q, 3*q, "*"); a.Header.Get("Range") != "bytes=0-786431" {
			t.Errorf("second request: %v", a.Header)
		}
		body.Write(bytes.Repeat([]byte{0xee}, 2*q-1000))
		body.Close()
		if status := <-done; status == 200 || status == 308 {
			t.Errorf("the first request: %d", status)
		}
		want := append(bytes.Repeat([]byte{0xee}, q), data(3 * q)[q:]...)
		w.want(200, "", "PUT", uri, nil, fmt.Sprintf("Content-Range: bytes */%d", 3*q), "X-Goog-Hash: crc32c="+crc(want))
	})
}

// A query returns the offset after all bytes that a vanished client has sent. Over
// real sockets, some are still in the buffers when the query arrives. On a busy machine the request that reads
// them can look silent because it does not run for a moment, so that most queries must be right, not each.
func TestQueryAfterVanishedClient(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("sends many MiB, or many requests")
	}
	w := newWorld(t, nil)
	host := strings.TrimPrefix(w.url, "http://")
	right := 0
	for round := range 5 {
		uri := w.start(fmt.Sprint("x", round))
		conn, err := net.Dial("tcp", host)
		require.NoError(t, err)
		_, query, _ := strings.Cut(uri, host)
		fmt.Fprintf(conn, "PUT %s HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n\r\n", query, host, 64*q)
		if _, err := conn.Write(data(q)); err != nil {
			t.Fatal(err)
		}
		for w.committed(uri) == "" { // until the server has seen the request
			time.Sleep(time.Millisecond)
		}
		if _, err := conn.Write(data(9*q + 5)[q:]); err != nil {
			t.Fatal(err)
		}
		conn.Close()
		if got, want := w.committed(uri), fmt.Sprintf("bytes=0-%d", 9*q-1); got == want {
			right++
		} else {
			t.Logf("round %d: query returned %q, want %q", round, got, want)
		}
	}
	if right < 3 {
		t.Errorf("%d of 5 queries returned all bytes", right)
	}
}

// 64 clients upload at once. One request of each is cut off, and the client resumes.
// Several clients then send the same final request to one session, which makes one
// object.
func TestManyClients(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("sends many MiB")
	}
	for _, mode := range []string{"memory", "directory"} {
		t.Run(mode, func(t *testing.T) {
			opts := &fakegcs.Options{Faults: []faults.Fault{{Match: faults.Match{Op: faults.OpPut}, Times: testsize.Full(64, 24), Do: faults.Action{Effect: faults.EffectCutRequest, Bytes: q + 9}}}}
			if mode == "directory" {
				opts.Dir = t.TempDir()
			}
			w := newWorld(t, opts)
			content := data(5*q + 3)
			var wg sync.WaitGroup
			for i := range testsize.Full(64, 24) {
				wg.Go(func() {
					name := fmt.Sprint("x", i)
					uri := w.start(name)
					w.put(uri, 0, 4*q, "*") // cut
					var last int
					fmt.Sscanf(w.committed(uri), "bytes=0-%d", &last)
					for range 50 {
						a, err := w.put(uri, last+1, len(content), fmt.Sprint(len(content)))
						if err == nil && a.StatusCode == 200 {
							break
						}
						fmt.Sscanf(w.committed(uri), "bytes=0-%d", &last)
					}
					w.holds(name, content)
				})
			}
			wg.Wait()
			uri := w.start("race")
			generations := make(chan any, 16)
			for range cap(generations) {
				wg.Go(func() {
					a, err := w.put(uri, 0, len(content), fmt.Sprint(len(content)))
					if err != nil || a.StatusCode != 200 {
						t.Errorf("race: %d %s %v", a.StatusCode, a.body, err)
						generations <- nil
						return
					}
					generations <- a.json(t)["generation"]
				})
			}
			wg.Wait()
			first := <-generations
			for range cap(generations) - 1 {
				if g := <-generations; g != first {
					t.Errorf("generations %v and %v", first, g)
				}
			}
		})
	}
}

// Close ends stalled requests over real sockets.
func TestCloseEndsStalls(t *testing.T) {
	for _, effect := range []faults.Effect{faults.EffectStall, faults.EffectStallBody, faults.EffectStallReply} {
		t.Run(string(effect), func(t *testing.T) {
			w := newWorld(t, &fakegcs.Options{Faults: []faults.Fault{{Match: faults.Match{Op: faults.OpPut}, Do: faults.Action{Effect: effect}}}})
			uri := w.start("x")
			done := make(chan error)
			go func() {
				_, err := w.put(uri, 0, 2*q, "*")
				done <- err
			}()
			for w.gcs.FaultReport()[0].Fired == 0 {
				time.Sleep(time.Millisecond)
			}
			if err := w.gcs.Close(); err != nil {
				t.Error(err)
			}
			if err := <-done; err == nil {
				t.Error("the stalled request got a reply")
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			w.ctx = ctx
			w.want(503, "", "GET", "/storage/v1/b/bkt", nil)
		})
	}
}

// If a session ends while a request sends to it, the request fails and leaves no
// bytes behind.
func TestSessionEndsDuringPut(t *testing.T) {
	for _, test := range []struct {
		name   string
		end    func(w *world, uri string)
		status int
	}{
		{"canceled", func(w *world, uri string) { w.do("DELETE", uri, nil) }, 499},
		{"expired", func(w *world, uri string) {
			w.gcs.Advance(8 * 24 * time.Hour)
			w.do("PUT", uri, nil, "Content-Range: bytes */*")
		}, 499},
		{"dead", func(w *world, uri string) {
			w.gcs.AddFaults(faults.Fault{Do: faults.Action{Effect: faults.EffectGone}})
			w.do("PUT", uri, nil, "Content-Range: bytes */*")
		}, 410},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			bubble(t, &fakegcs.Options{Dir: dir}, func(w *world) {
				uri := w.start("x")
				body, done := w.drip(uri, 5*q)
				body.Write(data(2*q + 9))
				time.Sleep(time.Minute)
				test.end(w, uri)
				body.Write(data(3*q - 9))
				body.Close()
				if status := <-done; status != test.status {
					t.Errorf("the request: %d, want %d", status, test.status)
				}
				if _, ok := w.gcs.Object("bkt", "x"); ok {
					t.Error("the object exists")
				}
				if left, _ := filepath.Glob(filepath.Join(dir, "blobs", "*")); len(left) != 0 {
					t.Errorf("left in the directory: %q", left)
				}
			})
		})
	}
}

// Close does not wait for a client that requests an object and does not read it.
func TestCloseEndsReads(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("sends many MiB, or many requests")
	}
	w := newWorld(t, nil)
	w.insert("x", string(data(64*q)))
	conn, err := net.Dial("tcp", strings.TrimPrefix(w.url, "http://"))
	require.NoError(t, err)
	defer conn.Close()
	fmt.Fprintf(conn, "GET /bkt/x HTTP/1.1\r\nHost: x\r\n\r\n")
	if _, err := conn.Read(make([]byte, 1)); err != nil { // the reply has started
		t.Fatal(err)
	}
	if err := w.gcs.Close(); err != nil {
		t.Error(err)
	}
}
