package metrics_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gcsup/fakegcs"
	"gcsup/fakegcs/memnet"
	"gcsup/internal/cli/metrics"
	"gcsup/internal/require"
	"gcsup/upload"
)

// TestHealthInOutage makes uploads in an outage of twenty minutes. Each minute, it asks for the health.
func TestHealthInOutage(t *testing.T) {
	unavailable := func(w http.ResponseWriter, _ *http.Request, _ <-chan struct{}) {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	silent := func(_ http.ResponseWriter, r *http.Request, over <-chan struct{}) {
		select {
		case <-over:
		case <-r.Context().Done():
		}
	}
	for _, c := range []struct {
		name    string
		uploads int
		down    func(w http.ResponseWriter, r *http.Request, over <-chan struct{})
	}{
		{"one upload, the service is unavailable", 1, unavailable},
		{"eight uploads share a circuit breaker, the service is unavailable", 8, unavailable},
		{"one upload, the service is silent", 1, silent},
	} {
		source := file(t, "source", 9*mib)
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fake, err := fakegcs.New(&fakegcs.Options{CreateBuckets: true})
				require.NoError(t, err)
				defer fake.Close()
				over := make(chan struct{})
				var outage atomic.Bool
				begin := sync.OnceFunc(func() { outage.Store(true) })
				handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if outage.Load() {
						c.down(w, r, over)
						return
					}
					fake.ServeHTTP(w, r)
				})
				ln, dial := memnet.Listen()
				srv := &http.Server{Handler: handler}
				go func() { _ = srv.Serve(ln) }()
				defer srv.Close()
				client := &http.Client{Transport: &http.Transport{DialContext: dial}}
				defer client.CloseIdleConnections()

				m := metrics.New(metrics.Options{})
				up, err := upload.New(client, &upload.Options{Endpoint: "http://fake.invalid", ChunkSize: mib, RetryFor: time.Hour, Observer: m.Observe, Exchange: func(x upload.Exchange) {
					if x.Committed >= 2*mib {
						begin()
					}
				}})
				require.NoError(t, err)
				var uploads sync.WaitGroup
				var failed atomic.Pointer[error]
				for i := range c.uploads {
					uploads.Go(func() {
						if _, err := up.File(t.Context(), source, upload.Spec{Bucket: "bkt", Object: fmt.Sprint(i)}); err != nil {
							failed.Store(&err)
						}
					})
				}
				health := func() (int, string) {
					r := httptest.NewRecorder()
					m.Handler().ServeHTTP(r, httptest.NewRequest(http.MethodGet, "/healthz", nil))
					return r.Code, r.Body.String()
				}
				for minute := range 20 {
					code, text := health()
					switch {
					case minute < 5 && code != http.StatusOK, minute >= 13 && (code != http.StatusServiceUnavailable || !strings.HasPrefix(text, "requests have failed for 1")):
						t.Errorf("after %d minutes: %d %s", minute, code, text)
					}
					time.Sleep(time.Minute)
				}
				outage.Store(false)
				close(over)
				uploads.Wait()
				if err := failed.Load(); err != nil {
					t.Error(*err)
				}
				if code, text := health(); code != http.StatusOK {
					t.Errorf("after the outage: %d %s", code, text)
				}
			})
		})
	}
}
