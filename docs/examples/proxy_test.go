package examples

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"gcsup/backoff"
	"gcsup/fakegcs"
	"gcsup/upload"
)

// startProxy returns the URL of a Proxy. ended gets a value when a request to it ended.
func startProxy(t *testing.T, srv *fakegcs.TestServer) (url string, ended chan struct{}) {
	t.Helper()
	up := uploader(t, srv, upload.Options{Policy: backoff.Policy{Initial: time.Millisecond, Maximum: time.Millisecond}})
	mux := http.NewServeMux()
	proxy := &Proxy{Uploader: up, Bucket: "inbox"}
	ended = make(chan struct{}, 10)
	mux.HandleFunc("PUT /{object...}", func(w http.ResponseWriter, r *http.Request) {
		defer func() { ended <- struct{}{} }()
		r.Body = http.MaxBytesReader(w, r.Body, 32<<20)
		proxy.ServeHTTP(w, r)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL, ended
}

func put(t *testing.T, url string, body io.Reader, header ...string) (int, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, url, body)
	if err != nil {
		t.Fatal(err)
	}
	if len(header) == 2 {
		req.Header.Set(header[0], header[1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
}

func TestProxy(t *testing.T) {
	data := content(5 << 20)
	denied := fakegcs.Fault{Match: fakegcs.Match{Object: "denied"}, Times: -1, Do: fakegcs.Action{Effect: fakegcs.EffectStatus, Status: 403}}
	down := fakegcs.Fault{Match: fakegcs.Match{Object: "down"}, Times: -1, Do: fakegcs.Action{Effect: fakegcs.EffectStatus, Status: 503}}
	srv := emulator(t, cutAfter(1<<20), denied, down)
	url, _ := startProxy(t, srv)

	for _, c := range []struct {
		name, path string
		size       int
		want       int
	}{
		{"one that resumes after a failure", "/a/b", len(data), 201},
		{"one that exists", "/a/b", len(data), 412},
		{"too large", "/large", 33 << 20, 413},
		{"a name that is not valid", "/.well-known/acme-challenge/x", 10, 400},
		{"no permission", "/denied", 10, 502},
		{"the service is down", "/down", 10, 503},
	} {
		body := data
		if c.size > len(data) {
			body = make([]byte, c.size)
		}
		got, err := put(t, url+c.path, bytes.NewReader(body[:c.size]), "If-None-Match", "*")
		if err != nil || got != c.want {
			t.Errorf("%s: the proxy replied %d, %v, want %d", c.name, got, err, c.want)
		}
	}
	wantObject(t, srv, "inbox", "a/b", data)
	for _, name := range []string{"large", "denied", "down"} {
		if _, ok := srv.Object("inbox", name); ok {
			t.Errorf("there is an object %s", name)
		}
	}
}

// TestProxyDisconnect checks that a client that disconnects leaves no object, and
// no session at the service.
func TestProxyDisconnect(t *testing.T) {
	srv := emulator(t)
	url, ended := startProxy(t, srv)
	body, client := io.Pipe()
	go func() {
		client.Write(content(20 << 20)) // more than a window: the upload is under way
		client.CloseWithError(errors.New("the client is gone"))
	}()
	if status, err := put(t, url+"/cut", body); err == nil {
		t.Errorf("the proxy replied %d, want no reply", status)
	}
	<-ended
	if _, ok := srv.Object("inbox", "cut"); ok {
		t.Error("there is an object")
	}
	ops := map[fakegcs.Op]int{}
	for _, r := range srv.Requests() {
		ops[r.Op]++
	}
	if ops[fakegcs.OpStart] != 1 || ops[fakegcs.OpCancel] != 1 {
		t.Errorf("requests: %v, want one session that was canceled", ops)
	}
}
