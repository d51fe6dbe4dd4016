package upload_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"gcsup/fakegcs"
	"gcsup/internal/require"
	"gcsup/upload"
)

// TestClientTimeoutIsNotUsed checks that the Timeout of a shared client ends no
// request of an upload, and that the client keeps it.
func TestClientTimeoutIsNotUsed(t *testing.T) {
	t.Parallel()
	inBubble(t, &fakegcs.Options{Latency: 40 * time.Second}, func(w *world) {
		w.http.Timeout = 30 * time.Second
		content := data(9 * mib)
		res, err := w.uploader().File(w.t.Context(), w.file(content), spec)
		if err != nil || res.Retries != 0 {
			t.Errorf("Result = %+v, %v, want no retry\n%s", res, err, w.trace())
		}
		w.wantObject("obj", content)
		if w.http.Timeout != 30*time.Second || w.http.CheckRedirect != nil {
			t.Errorf("the caller's client was changed: %+v", w.http)
		}
	})
}

// TestNewTransport checks that the transport uses HTTP/1.1 with a server that offers
// HTTP/2, and keeps as many idle connections as there were concurrent requests.
func TestNewTransport(t *testing.T) {
	const requests = 10
	addrs := make(chan string, 2*requests)
	together := make(chan struct{})
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		addrs <- r.RemoteAddr
		if r.ProtoMajor != 1 {
			t.Errorf("a request came with %s, want HTTP/1.1", r.Proto)
		}
		<-together
	}))
	srv.EnableHTTP2 = true
	srv.StartTLS()
	defer srv.Close()
	tr := upload.NewTransport(nil)
	defer tr.CloseIdleConnections()
	tr.TLSClientConfig = srv.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	tr.TLSClientConfig.NextProtos = nil
	client := &http.Client{Transport: tr}

	seen := map[string]bool{}
	for round := range 2 {
		done := make(chan error, requests)
		for range requests {
			go func() {
				resp, err := client.Get(srv.URL)
				if err == nil {
					err = resp.Body.Close()
				}
				done <- err
			}()
		}
		for range requests {
			addr := <-addrs
			if round == 1 && !seen[addr] {
				t.Errorf("a second round of requests opened the connection %s, want those of the first", addr)
			}
			seen[addr] = true
		}
		for range requests {
			together <- struct{}{}
		}
		for range requests {
			require.NoError(t, <-done)
		}
	}
}
