package examples

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/fakegcs/memnet"
	"gcsup/upload"
)

// proxyWorld is a Proxy and its emulator. Both are served by package net/http in virtual
// time.
type proxyWorld struct {
	t      *testing.T
	srv    *fakegcs.Server
	client *http.Client
	ended  chan struct{} // gets a value when a request to the Proxy ended
}

// inProxyWorld runs f in a world with faults of the service. The server of the Proxy has
// timeouts that are shorter than most uploads of the tests.
func inProxyWorld(t *testing.T, f func(t *testing.T, w *proxyWorld), faults ...faults.Fault) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		srv, err := fakegcs.New(&fakegcs.Options{CreateBuckets: true, Faults: faults})
		if err != nil {
			t.Fatal(err)
		}
		defer srv.Close()
		serve := func(h http.Handler) *http.Transport {
			ln, dial := memnet.Listen()
			server := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second}
			if h != http.Handler(srv) {
				server.ReadTimeout, server.WriteTimeout = 5*time.Second, 5*time.Second
			}
			go server.Serve(ln)
			t.Cleanup(func() { server.Close() })
			transport := &http.Transport{DialContext: dial, ExpectContinueTimeout: time.Hour}
			t.Cleanup(transport.CloseIdleConnections)
			return transport
		}
		up, err := upload.New(&http.Client{Transport: serve(srv)}, &upload.Options{Endpoint: "http://gcs.test"})
		if err != nil {
			t.Fatal(err)
		}
		proxy := &Proxy{Uploader: up, Bucket: "inbox", Limit: 32 << 20, Idle: time.Minute, Timeout: time.Hour, Slots: make(chan struct{}, 2)}
		w := &proxyWorld{t: t, srv: srv, ended: make(chan struct{}, 10)}
		mux := http.NewServeMux()
		mux.HandleFunc("PUT /{object...}", func(rw http.ResponseWriter, r *http.Request) {
			defer func() { w.ended <- struct{}{} }()
			proxy.ServeHTTP(rw, r)
		})
		w.client = &http.Client{Transport: serve(mux)}
		f(t, w)
		time.Sleep(time.Minute) // for servers, which wait when they have closed a connection, and for bodies
	})
}

// put uploads body and returns the status of the reply.
func (w *proxyWorld) put(ctx context.Context, name string, body io.Reader, header ...string) (int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, "http://proxy.test/"+name, body)
	if err != nil {
		return 0, err
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := w.client.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
}

// wantNothing fails if there is an object, or a session that was not canceled.
func (w *proxyWorld) wantNothing(name string) {
	w.t.Helper()
	if _, ok := w.srv.Object("inbox", name); ok {
		w.t.Errorf("there is an object %s", name)
	}
	ops := map[faults.Op]int{}
	for _, r := range w.srv.Requests() {
		ops[r.Op]++
	}
	if ops[faults.OpStart] != ops[faults.OpCancel] {
		w.t.Errorf("requests: %v, want each session canceled", ops)
	}
}

// wantObject checks the bytes of an object.
func (w *proxyWorld) wantObject(name string, want []byte) {
	w.t.Helper()
	got, err := w.srv.ReadObject("inbox", name)
	if err != nil || !bytes.Equal(got, want) {
		w.t.Errorf("%s has %d bytes, %v, want %d", name, len(got), err, len(want))
	}
}

// slowly returns a body that takes a pause before each 256 KiB. It ends with err.
func slowly(data []byte, pause time.Duration, err error) io.Reader {
	r, w := io.Pipe()
	go func() {
		for len(data) > 0 {
			time.Sleep(pause)
			n, werr := w.Write(data[:min(len(data), 256<<10)])
			if data = data[n:]; werr != nil {
				return
			}
		}
		w.CloseWithError(err)
	}()
	return r
}

// silent returns a body that sends data, and then nothing until ctx is done.
func silent(ctx context.Context, data []byte) io.Reader {
	r, w := io.Pipe()
	context.AfterFunc(ctx, func() { w.CloseWithError(context.Cause(ctx)) })
	return struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(data), r), r}
}

// TestProxy checks the statuses, and that only complete bodies become objects.
func TestProxy(t *testing.T) {
	data := content(5 << 20)
	denied := faults.Fault{Match: faults.Match{Object: "denied"}, Times: -1, Do: faults.Action{Effect: faults.EffectStatus, Status: 403}}
	down := faults.Fault{Match: faults.Match{Object: "down"}, Times: -1, Do: faults.Action{Effect: faults.EffectStatus, Status: 503}}
	inProxyWorld(t, func(t *testing.T, w *proxyWorld) {
		for _, c := range []struct {
			name, path string
			size       int
			want       int
		}{
			{"one that resumes after a failure", "a/b", len(data), 201},
			{"one that exists", "a/b", len(data), 412},
			{"a name that is not valid", ".well-known/acme-challenge/x", 10, 400},
			{"no permission", "denied", 10, 502},
			{"the service is down", "down", 10, 503},
		} {
			got, err := w.put(t.Context(), c.path, bytes.NewReader(data[:c.size]), "If-None-Match", "*")
			if err != nil || got != c.want {
				t.Errorf("%s: the proxy replied %d, %v, want %d", c.name, got, err, c.want)
			}
		}
		w.wantObject("a/b", data)
	}, cutAfter(1<<20), denied, down)
}

// TestProxyLimit checks that a body that is too large makes no object, and that a client
// that asks before it sends the body sends nothing.
func TestProxyLimit(t *testing.T) {
	large := content(33 << 20)
	inProxyWorld(t, func(t *testing.T, w *proxyWorld) {
		asked := &countingReader{r: bytes.NewReader(large)}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://proxy.test/announced", asked)
		if err != nil {
			t.Fatal(err)
		}
		req.ContentLength = int64(len(large))
		req.Header.Set("Expect", "100-continue")
		resp, err := w.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != 413 || asked.n != 0 {
			t.Errorf("an announced size: the proxy replied %d, and the client sent %d bytes", resp.StatusCode, asked.n)
		}
		if status, err := w.put(t.Context(), "chunked", struct{ io.Reader }{bytes.NewReader(large)}); status != 413 || err != nil {
			t.Errorf("an unknown size: the proxy replied %d, %v, want 413", status, err)
		}
		w.wantNothing("announced")
		w.wantNothing("chunked")
	})
}

// countingReader counts the bytes that are read.
type countingReader struct {
	r io.Reader
	n int
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += n
	return n, err
}

// TestProxySlots checks that requests beyond the limit are refused, and that those that
// ended do not count.
func TestProxySlots(t *testing.T) {
	inProxyWorld(t, func(t *testing.T, w *proxyWorld) {
		ctx, cancel := context.WithCancel(t.Context())
		for range 2 {
			go w.put(ctx, "busy", silent(ctx, content(1<<20)))
		}
		synctest.Wait()
		if status, err := w.put(t.Context(), "o", bytes.NewReader(content(10))); status != 503 || err != nil {
			t.Errorf("the proxy replied %d, %v, want 503", status, err)
		}
		cancel()
		for range 3 {
			<-w.ended
		}
		if status, err := w.put(t.Context(), "o", bytes.NewReader(content(10))); status != 201 || err != nil {
			t.Errorf("later: the proxy replied %d, %v, want 201", status, err)
		}
		w.wantNothing("busy")
	})
}

// TestProxySlowClient checks that an upload may take longer than the timeouts of the
// server if the client keeps sending.
func TestProxySlowClient(t *testing.T) {
	inProxyWorld(t, func(t *testing.T, w *proxyWorld) {
		data := content(5 << 20)
		began := time.Now()
		status, err := w.put(t.Context(), "o", slowly(data, 30*time.Second, nil))
		if status != 201 || err != nil || time.Since(began) != 10*time.Minute {
			t.Errorf("the proxy replied %d, %v after %v, want 201 after 10m", status, err, time.Since(began))
		}
		w.wantObject("o", data)
	})
}

// TestProxySlowService checks that Idle does not limit the time between the last byte of the
// client and the reply. The server reads from the connection meanwhile, to notice that the
// client disconnects.
func TestProxySlowService(t *testing.T) {
	busy := faults.Action{Effect: faults.EffectStatus, Status: 503, RetryAfter: "50"}
	inProxyWorld(t, func(t *testing.T, w *proxyWorld) {
		data := content(5 << 20)
		began := time.Now()
		status, err := w.put(t.Context(), "o", bytes.NewReader(data))
		if took := time.Since(began); status != 201 || err != nil || took < 2*time.Minute {
			t.Errorf("the proxy replied %d, %v after %v, want 201 after more than 2m", status, err, took)
		}
		w.wantObject("o", data)
	}, faults.Fault{Match: faults.Match{Op: faults.OpFinalize}, Do: busy}, faults.Fault{Match: faults.Match{Op: faults.OpQuery}, Times: 2, Do: busy})
}

// TestProxyIdle checks that a client that sends nothing gets 408, and leaves no object.
func TestProxyIdle(t *testing.T) {
	for _, size := range []int{0, 1 << 20, 20 << 20} {
		inProxyWorld(t, func(t *testing.T, w *proxyWorld) {
			began := time.Now()
			status, err := w.put(t.Context(), "o", silent(t.Context(), content(size)))
			if took := time.Since(began); status != 408 || err != nil || took < time.Minute || took > time.Minute+time.Second {
				t.Errorf("after %d bytes: the proxy replied %d, %v after %v, want 408 after 1m", size, status, err, took)
			}
			<-w.ended
			w.wantNothing("o")
		})
	}
}

// TestProxyTimeout checks that a request that takes too long gets 504, and leaves no
// object, even if the client keeps sending.
func TestProxyTimeout(t *testing.T) {
	inProxyWorld(t, func(t *testing.T, w *proxyWorld) {
		began := time.Now()
		status, err := w.put(t.Context(), "o", slowly(content(31<<20), 37*time.Second, nil))
		if took := time.Since(began); status != 504 || err != nil || took < time.Hour || took > time.Hour+time.Minute {
			t.Errorf("the proxy replied %d, %v after %v, want 504 after 1h", status, err, took)
		}
		<-w.ended
		w.wantNothing("o")
	})
}

// TestProxyServiceDown checks that the proxy replies when it gives up on the service, even
// if the client sends nothing at that moment and its body is not complete: before the
// upload reads the rest of the body, and while it waits for it.
func TestProxyServiceDown(t *testing.T) {
	down := faults.Action{Effect: faults.EffectStatus, Status: 503}
	for name, faults := range map[string][]faults.Fault{
		"before": {{Match: faults.Match{Op: faults.OpStart}, Times: -1, Do: down}},
		"while":  {{Match: faults.Match{Op: faults.OpPut}, Times: -1, Do: down}, {Match: faults.Match{Op: faults.OpQuery}, Times: -1, Do: down}},
	} {
		inProxyWorld(t, func(t *testing.T, w *proxyWorld) {
			began := time.Now()
			status, err := w.put(t.Context(), "o", silent(t.Context(), content(20<<20)))
			if took := time.Since(began); status != 503 || err != nil || took > 40*time.Second {
				t.Errorf("%s: the proxy replied %d, %v after %v, want 503 before Idle", name, status, err, took)
			}
			<-w.ended
			if _, ok := w.srv.Object("inbox", "o"); ok {
				t.Error("there is an object")
			}
		}, faults...)
	}
}

// TestProxyDisconnect checks that a client that disconnects leaves no object, and no
// session at the service: in the middle of its body, while it sends nothing, and after its
// body while the service does not answer.
func TestProxyDisconnect(t *testing.T) {
	gone := errors.New("the client is gone")
	stall := faults.Fault{Match: faults.Match{Op: faults.OpFinalize}, Do: faults.Action{Effect: faults.EffectStall}}
	for name, body := range map[string]func(context.Context) io.Reader{
		"in the middle": func(context.Context) io.Reader { return slowly(content(20<<20), time.Millisecond, gone) },
		"silent":        func(ctx context.Context) io.Reader { return silent(ctx, content(20<<20)) },
		"at the end":    func(context.Context) io.Reader { return bytes.NewReader(content(20 << 20)) },
	} {
		t.Run(name, func(t *testing.T) {
			inProxyWorld(t, func(t *testing.T, w *proxyWorld) {
				ctx, cancel := context.WithTimeoutCause(t.Context(), 20*time.Second, gone)
				defer cancel()
				began := time.Now()
				if status, err := w.put(ctx, "cut", body(ctx)); err == nil {
					t.Errorf("the proxy replied %d, want no reply", status)
				}
				<-w.ended
				if took := time.Since(began); took > 21*time.Second {
					t.Errorf("the request ended after %v", took)
				}
				w.wantNothing("cut")
			}, stall)
		})
	}
}
