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
)

// dripping is a body that sends its first part and then waits to be told to go on.
type dripping struct {
	parts chan []byte
	rest  []byte
}

func (d *dripping) Read(p []byte) (int, error) {
	if len(d.rest) == 0 {
		part, ok := <-d.parts
		if !ok {
			return 0, io.EOF
		}
		d.rest = part
	}
	n := copy(p, d.rest)
	d.rest = d.rest[n:]
	return n, nil
}

// While a request sends slowly a query says what is committed, soon.
func TestQueryDuringLivePut(t *testing.T) {
	bubble(t, nil, func(w *world) {
		uri := w.start("x")
		body := &dripping{parts: make(chan []byte)}
		done := make(chan int)
		go func() {
			req, _ := http.NewRequest("PUT", uri, body)
			req.ContentLength = 3 * q
			resp, err := w.client.Do(req)
			if err != nil {
				t.Error(err)
			}
			resp.Body.Close()
			done <- resp.StatusCode
		}()
		content := data(3 * q)
		body.parts <- content[:q+1000]
		time.Sleep(time.Minute)
		start := time.Now()
		if got := w.committed(uri); got != "bytes=0-262143" {
			t.Errorf("query says %q", got)
		}
		if d := time.Since(start); d > time.Second {
			t.Errorf("the query took %v", d)
		}
		body.parts <- content[q+1000:]
		close(body.parts)
		if status := <-done; status != 200 {
			t.Errorf("the slow request was answered %d", status)
		}
	})
}

// A data request takes the session over from one that has fallen silent.
func TestTakeOver(t *testing.T) {
	bubble(t, nil, func(w *world) {
		uri := w.start("x")
		body := &dripping{parts: make(chan []byte)}
		done := make(chan error)
		go func() {
			req, _ := http.NewRequest("PUT", uri, body)
			req.ContentLength = 3 * q
			req.Header.Set("Content-Range", fmt.Sprintf("bytes 0-%d/*", 3*q-1))
			resp, err := w.client.Do(req)
			if err == nil && resp.StatusCode < 400 {
				err = fmt.Errorf("answered %s", resp.Status)
			} else if err == nil {
				resp.Body.Close()
			}
			done <- err
		}()
		body.parts <- bytes.Repeat([]byte{0xee}, q+1000)
		time.Sleep(time.Minute)
		if a, err := w.put(uri, q, 3*q, "*"); err != nil || a.Header.Get("Range") != "bytes=0-786431" {
			t.Errorf("second request: %v %v", a.Header, err)
		}
		body.parts <- bytes.Repeat([]byte{0xee}, 2*q-1000)
		close(body.parts)
		if err := <-done; err != nil {
			t.Log("the first request ended with", err)
		}
		want := append(bytes.Repeat([]byte{0xee}, q), data(3 * q)[q:]...)
		if a := w.do("PUT", uri, nil, fmt.Sprintf("Content-Range: bytes */%d", 3*q), "X-Goog-Hash: crc32c="+crc(want)); a.StatusCode != 200 {
			t.Errorf("finish: %d %s", a.StatusCode, a.body)
		}
	})
}

// What a vanished client had sent is all there when a query is answered, over
// real sockets, whose buffers the server has yet to empty.
func TestQueryAfterVanishedClient(t *testing.T) {
	w := newWorld(t, nil)
	host := strings.TrimPrefix(w.url, "http://")
	for round := range 5 {
		uri := w.start(fmt.Sprint("x", round))
		conn, err := net.Dial("tcp", host)
		if err != nil {
			t.Fatal(err)
		}
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
		if got, want := w.committed(uri), fmt.Sprintf("bytes=0-%d", 9*q-1); got != want {
			t.Fatalf("round %d: query says %q, want %q", round, got, want)
		}
	}
}

// 64 clients upload at once, of which each cuts a request and continues; a few
// race for one session with the same final request, which stores once.
func TestManyClients(t *testing.T) {
	for _, mode := range []string{"memory", "directory"} {
		t.Run(mode, func(t *testing.T) {
			opts := &fakegcs.Options{Faults: []fakegcs.Fault{{Match: fakegcs.Match{Op: fakegcs.OpPut}, Times: 64, Do: fakegcs.Action{Effect: fakegcs.EffectCutRequest, Bytes: q + 9}}}}
			if mode == "directory" {
				opts.Dir = t.TempDir()
			}
			w := newWorld(t, opts)
			content := data(5*q + 3)
			var wg sync.WaitGroup
			for i := range 64 {
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
					if got, err := w.gcs.ReadObject("bkt", name); err != nil || !bytes.Equal(got, content) {
						t.Errorf("%s: %d bytes, %v", name, len(got), err)
					}
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

// Close ends what is stalled, over real sockets as well.
func TestCloseEndsStalls(t *testing.T) {
	for _, effect := range []fakegcs.Effect{fakegcs.EffectStall, fakegcs.EffectStallBody, fakegcs.EffectStallReply} {
		t.Run(string(effect), func(t *testing.T) {
			w := newWorld(t, &fakegcs.Options{Faults: []fakegcs.Fault{{Match: fakegcs.Match{Op: fakegcs.OpPut}, Do: fakegcs.Action{Effect: effect}}}})
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
				t.Error("the stalled request was answered")
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			w.ctx = ctx
			if a := w.do("GET", "/storage/v1/b/bkt", nil); a.StatusCode != 503 {
				t.Errorf("after Close: %d", a.StatusCode)
			}
		})
	}
}

// A session that ends under a request that is sending to it: that one is told,
// nothing of it stays.
func TestSessionEndsDuringPut(t *testing.T) {
	for _, test := range []struct {
		name   string
		end    func(w *world, uri string)
		status int
	}{
		{"cancelled", func(w *world, uri string) { w.do("DELETE", uri, nil) }, 499},
		{"expired", func(w *world, uri string) {
			w.gcs.Advance(8 * 24 * time.Hour)
			w.do("PUT", uri, nil, "Content-Range: bytes */*")
		}, 499},
		{"dead", func(w *world, uri string) {
			w.gcs.AddFaults(fakegcs.Fault{Do: fakegcs.Action{Effect: fakegcs.EffectGone}})
			w.do("PUT", uri, nil, "Content-Range: bytes */*")
		}, 410},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			bubble(t, &fakegcs.Options{Dir: dir}, func(w *world) {
				uri := w.start("x")
				body := &dripping{parts: make(chan []byte)}
				done := make(chan int)
				go func() {
					req, _ := http.NewRequest("PUT", uri, body)
					req.ContentLength = 5 * q
					resp, err := w.client.Do(req)
					if err != nil {
						t.Error(err)
						done <- 0
						return
					}
					resp.Body.Close()
					done <- resp.StatusCode
				}()
				body.parts <- data(2*q + 9)
				time.Sleep(time.Minute)
				test.end(w, uri)
				body.parts <- data(3*q - 9)
				close(body.parts)
				if status := <-done; status != test.status {
					t.Errorf("the request was answered %d, want %d", status, test.status)
				}
				if _, ok := w.gcs.Object("bkt", "x"); ok {
					t.Error("there is an object")
				}
				if left, _ := filepath.Glob(filepath.Join(dir, "blobs", "*")); len(left) != 0 {
					t.Errorf("left in the directory: %q", left)
				}
			})
		})
	}
}

// Close does not wait for a client that asks for an object and doesn't read it.
func TestCloseEndsReads(t *testing.T) {
	w := newWorld(t, nil)
	w.insert("x", string(data(64*q)))
	conn, err := net.Dial("tcp", strings.TrimPrefix(w.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "GET /bkt/x HTTP/1.1\r\nHost: x\r\n\r\n")
	if _, err := conn.Read(make([]byte, 1)); err != nil { // it has begun
		t.Fatal(err)
	}
	if err := w.gcs.Close(); err != nil {
		t.Error(err)
	}
}
