package backoff_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gcsup/backoff"
	"gcsup/fakegcs/memnet"
	"gcsup/internal/require"
)

// service is an HTTP server in a synctest bubble. It serves each request with
// the next handler of its script, and later ones with 200 and the body of the
// request.
type service struct {
	start  time.Time
	script []http.HandlerFunc
	times  []time.Duration
	bodies []string
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.times = append(s.times, time.Since(s.start))
	s.bodies = append(s.bodies, string(body))
	if len(s.script) > 0 {
		play := s.script[0]
		s.script = s.script[1:]
		play(w, r)
		return
	}
	w.Write(body)
}

// serve calls use with a client of s that has the transport t and a network in
// the bubble.
func serve(t *testing.T, s *service, transport *backoff.Transport, use func(*http.Client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		listener, dial := memnet.Listen()
		server := &http.Server{Handler: s}
		go server.Serve(listener)
		defer server.Close()
		base := &http.Transport{DialContext: dial}
		defer base.CloseIdleConnections()
		transport.Base = base
		s.start = time.Now()
		use(&http.Client{Transport: transport})
	})
}

func answer(code int, body string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(code)
		io.WriteString(w, body)
	}
}

func hangUp(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

func TestTransport(t *testing.T) {
	const s = time.Second
	const limited = `{"error":{"errors":[{"reason":"userRateLimitExceeded"}]}}`
	const daily = `{"error":{"errors":[{"reason":"dailyLimitExceeded"}]}}`
	long := strings.Repeat("long ", 100_000)
	all := func(n int, h http.HandlerFunc) []http.HandlerFunc { return slices.Repeat([]http.HandlerFunc{h}, n) }
	tests := []struct {
		name   string
		method string
		body   string
		script []http.HandlerFunc
		times  []time.Duration
		code   int // 0 for an error
		reply  string
	}{
		{"at once", "GET", "", nil, []time.Duration{0}, 200, ""},
		{"third time", "GET", "", []http.HandlerFunc{answer(503, ""), answer(429, "")}, []time.Duration{0, 1 * s, 3 * s}, 200, ""},
		{"body again", "PUT", "hello", []http.HandlerFunc{answer(500, "oops"), hangUp}, []time.Duration{0, 1 * s, 3 * s}, 200, "hello"},
		{"connection broken", "GET", "", []http.HandlerFunc{hangUp}, []time.Duration{0, 1 * s}, 200, ""},
		{"retry-after", "GET", "", []http.HandlerFunc{answer(503, "", "Retry-After", "9")}, []time.Duration{0, 9 * s}, 200, ""},
		{"retry-after of a day", "GET", "", []http.HandlerFunc{answer(503, "", "Retry-After", "86400")}, []time.Duration{0, 59 * s}, 200, ""},
		// The budget is just enough for five retries.
		{"budget spent", "GET", "", all(9, answer(503, "down")), []time.Duration{0, 1 * s, 3 * s, 7 * s, 15 * s, 31 * s}, 503, "down"},
		{"long error", "GET", "", all(9, answer(500, long)), []time.Duration{0, 1 * s, 3 * s, 7 * s, 15 * s, 31 * s}, 500, long},
		{"always broken", "GET", "", all(9, hangUp), []time.Duration{0, 1 * s, 3 * s, 7 * s, 15 * s, 31 * s}, 0, ""},
		{"not found", "GET", "", []http.HandlerFunc{answer(404, "nothing here")}, []time.Duration{0}, 404, "nothing here"},
		{"unauthorized", "GET", "", []http.HandlerFunc{answer(401, "who")}, []time.Duration{0}, 401, "who"},
		{"forbidden", "GET", "", []http.HandlerFunc{answer(403, "no")}, []time.Duration{0}, 403, "no"},
		{"rate limit", "GET", "", []http.HandlerFunc{answer(403, limited)}, []time.Duration{0, 1 * s}, 200, ""},
		{"daily limit", "GET", "", []http.HandlerFunc{answer(403, daily)}, []time.Duration{0}, 403, daily},
		{"daily limit by 429", "GET", "", []http.HandlerFunc{answer(429, daily)}, []time.Duration{0}, 429, daily},
		{"body that can be read once", "PUT", "once", []http.HandlerFunc{answer(503, "down")}, []time.Duration{0}, 503, "down"},
		{"not idempotent", "POST", "hello", []http.HandlerFunc{answer(503, "down")}, []time.Duration{0}, 503, "down"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			server := &service{script: test.script}
			var counters backoff.Counters
			serve(t, server, &backoff.Transport{Policy: noJitter, Counters: &counters}, func(client *http.Client) {
				var body io.Reader
				if test.body != "" {
					body = strings.NewReader(test.body)
				}
				req, err := http.NewRequest(test.method, "http://api.example.com/v1/thing", body)
				require.NoError(t, err)
				if test.body == "once" {
					req.GetBody = nil
				}
				resp, err := client.Do(req)
				if test.code == 0 {
					if !errors.Is(err, backoff.ErrRetriesExhausted) || !errors.Is(err, io.EOF) {
						t.Errorf("Do = %v, want the spent budget and EOF", err)
					}
				} else if err != nil {
					t.Errorf("Do = %v, want status %d", err, test.code)
				} else {
					reply, err := io.ReadAll(resp.Body)
					resp.Body.Close()
					if resp.StatusCode != test.code || string(reply) != test.reply || err != nil {
						t.Errorf("reply = %d with %d bytes, %v, want %d with %d", resp.StatusCode, len(reply), err, test.code, len(test.reply))
					}
				}
			})
			if !reflect.DeepEqual(server.times, test.times) {
				t.Errorf("requests at %v, want %v", server.times, test.times)
			}
			for i, body := range server.bodies {
				if body != test.body {
					t.Errorf("body of request %d = %q, want %q", i, body, test.body)
				}
			}
			if got := counters.Counts(); test.method != "POST" && test.body != "once" && (got.Attempts != int64(len(test.times)) || got.Retries != int64(len(test.times)-1)) {
				t.Errorf("Counts() = %+v, want %d attempts", got, len(test.times))
			}
		})
	}
}

// TestTransportContext checks that the request's context limits all attempts
// and waits.
func TestTransportContext(t *testing.T) {
	t.Run("canceled in a wait", func(t *testing.T) {
		server := &service{script: []http.HandlerFunc{answer(503, ""), answer(503, "")}}
		serve(t, server, &backoff.Transport{Policy: noJitter}, func(client *http.Client) {
			ctx, cancel := context.WithCancel(context.Background())
			time.AfterFunc(2*time.Second, cancel)
			req, _ := http.NewRequestWithContext(ctx, "GET", "http://api.example.com/", nil)
			_, err := client.Do(req)
			if elapsed := time.Since(server.start); !errors.Is(err, context.Canceled) || elapsed != 2*time.Second {
				t.Errorf("Do = %v after %v, want canceled after 2s", err, elapsed)
			}
		})
	})
	t.Run("the wait exceeds the deadline", func(t *testing.T) {
		server := &service{script: []http.HandlerFunc{answer(503, ""), answer(503, "last")}}
		serve(t, server, &backoff.Transport{Policy: noJitter}, func(client *http.Client) {
			client.Timeout = 2 * time.Second
			resp, err := client.Get("http://api.example.com/")
			if elapsed := time.Since(server.start); err != nil || resp.StatusCode != 503 || elapsed != time.Second {
				t.Fatalf("Get = %v, %v after %v, want the 503 after 1s", resp, err, elapsed)
			}
			if body, _ := io.ReadAll(resp.Body); string(body) != "last" {
				t.Errorf("body = %q, want that of the last reply", body)
			}
			resp.Body.Close()
		})
	})
}

// roundTripper is a function that implements http.RoundTripper.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// countedBody is a body that counts how often it is closed.
type countedBody struct {
	io.Reader
	closed *int
}

func (b countedBody) Close() error { *b.closed++; return nil }

// TestTransportCloses checks that the bodies of all requests and of all
// discarded replies are closed.
func TestTransportCloses(t *testing.T) {
	for _, size := range []int{0, 64<<10 - 1, 64 << 10, 64<<10 + 1} {
		synctest.Test(t, func(t *testing.T) {
			var requests, replies, tries int
			transport := &backoff.Transport{Policy: noJitter, Base: roundTripper(func(req *http.Request) (*http.Response, error) {
				tries++
				io.Copy(io.Discard, req.Body)
				req.Body.Close()
				if tries%2 == 0 {
					return nil, io.EOF
				}
				return &http.Response{StatusCode: 503, Body: countedBody{bytes.NewReader(make([]byte, size)), &replies}}, nil
			})}
			body := func() (io.ReadCloser, error) { return countedBody{strings.NewReader("x"), &requests}, nil }
			req, _ := http.NewRequest("PUT", "http://api.example.com/", nil)
			req.ContentLength = 1
			req.Body, _ = body()
			req.GetBody = body
			if _, err := transport.RoundTrip(req); !errors.Is(err, backoff.ErrRetriesExhausted) {
				t.Errorf("RoundTrip = %v, want the spent budget", err)
			}
			if tries != 6 || requests != 6 || replies != 3 {
				t.Errorf("error of %d bytes: %d tries, %d request bodies and %d reply bodies closed, want 6, 6, 3", size, tries, requests, replies)
			}
		})
	}
}

func TestTransportErrors(t *testing.T) {
	t.Run("policy", func(t *testing.T) {
		var closed int
		req, _ := http.NewRequest("PUT", "http://api.example.com/", countedBody{strings.NewReader("x"), &closed})
		_, err := (&backoff.Transport{Policy: backoff.Policy{Maximum: time.Hour}}).RoundTrip(req)
		if err == nil || closed != 1 {
			t.Errorf("RoundTrip with a wait of an hour = %v, body closed %d times, want an error and once", err, closed)
		}
	})
	t.Run("a permanent error is returned unchanged", func(t *testing.T) {
		untrusted := x509.UnknownAuthorityError{}
		transport := &backoff.Transport{Base: roundTripper(func(*http.Request) (*http.Response, error) { return nil, untrusted })}
		req, _ := http.NewRequest("GET", "http://api.example.com/", nil)
		if _, err := transport.RoundTrip(req); err != untrusted {
			t.Errorf("RoundTrip = %v, want %v", err, untrusted)
		}
	})
	t.Run("GetBody fails", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			gone := errors.New("file is gone")
			transport := &backoff.Transport{Base: roundTripper(func(*http.Request) (*http.Response, error) { return nil, io.EOF })}
			req, _ := http.NewRequest("PUT", "http://api.example.com/", strings.NewReader("x"))
			req.GetBody = func() (io.ReadCloser, error) { return nil, gone }
			if _, err := transport.RoundTrip(req); !errors.Is(err, gone) {
				t.Errorf("RoundTrip = %v, want %v", err, gone)
			}
		})
	})
}

// TestTransportSharesBreaker checks that the requests of one Transport share a
// breaker, unless it is switched off, and that the observer sees it.
func TestTransportSharesBreaker(t *testing.T) {
	const n = 32
	run := func(t *testing.T, breaker *backoff.Breaker) (tries, held int) {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			transport := &backoff.Transport{
				Breaker: breaker,
				Base: roundTripper(func(*http.Request) (*http.Response, error) {
					mu.Lock()
					defer mu.Unlock()
					tries++
					return nil, io.EOF
				}),
				Observe: func(req *http.Request, a backoff.Attempt) {
					if req.URL.Path != "/thing" {
						t.Errorf("observed request for %q", req.URL.Path)
					}
					mu.Lock()
					defer mu.Unlock()
					if a.Blocked {
						held++
					}
				},
			}
			var wg sync.WaitGroup
			for range n {
				wg.Go(func() {
					req, _ := http.NewRequest("GET", "http://api.example.com/thing", nil)
					if _, err := transport.RoundTrip(req); !errors.Is(err, io.EOF) {
						t.Errorf("error = %v, want EOF", err)
					}
				})
			}
			wg.Wait()
		})
		return tries, held
	}
	if tries, held := run(t, nil); tries > n+7 || held < n {
		t.Errorf("%d tries, %d waits at the breaker, want at most %d and some for each", tries, held, n+7)
	}
	if tries, held := run(t, backoff.NoBreaker); tries != 6*n || held > 0 {
		t.Errorf("without a breaker: %d tries, %d waits at it, want %d and 0", tries, held, 6*n)
	}
}

func TestIdempotent(t *testing.T) {
	const json = "https://storage.googleapis.com/storage/v1/"
	const local = "http://localhost:4443/storage/v1/"
	const upload = "https://storage.googleapis.com/upload/storage/v1/b/bkt/o?uploadType="
	const xml = "https://storage.googleapis.com/bkt/obj"
	tests := []struct {
		method, url, header string
		want                bool
	}{
		// Always.
		{"GET", json + "b/bkt/o/obj", "", true},
		{"", json + "b/bkt/o/obj", "", true},
		{"HEAD", xml, "", true},
		{"POST", json + "b?project=p", "", true},
		{"DELETE", json + "b/bkt", "", true},
		{"POST", json + "b/bkt/lockRetentionPolicy?ifMetagenerationMatch=3", "", true},
		{"DELETE", json + "projects/p/hmacKeys/k", "", true},
		{"DELETE", json + "b/bkt/notificationConfigs/1", "", true},
		{"POST", upload + "resumable", "", true},
		{"PUT", upload + "resumable&upload_id=x", "", true},
		{"DELETE", upload + "resumable&upload_id=x", "", true},
		{"POST", xml, "X-Goog-Resumable: start", true},
		{"PUT", xml + "?upload_id=x", "", true},

		// With a precondition.
		{"POST", upload + "media&name=obj", "", false},
		{"POST", upload + "multipart&name=obj&ifGenerationMatch=0", "", true},
		{"POST", upload + "media&name=obj&ifMetagenerationMatch=1", "", false},
		{"POST", json + "b/bkt/o/a%2Fb/compose", "", false},
		{"POST", json + "b/bkt/o/a%2Fb/compose?ifGenerationMatch=1", "", true},
		{"POST", json + "b/bkt/o/obj/copyTo/b/bkt2/o/obj2?ifGenerationMatch=1", "", true},
		{"POST", json + "b/bkt/o/obj/rewriteTo/b/bkt2/o/obj2", "", false},
		{"POST", json + "b/bkt/o/obj/rewriteTo/b/bkt2/o/obj2?ifGenerationMatch=1", "", true},
		{"DELETE", json + "b/bkt/o/obj", "", false},
		{"DELETE", json + "b/bkt/o/a%2Facl%2Fb", "", false},
		{"DELETE", json + "b/bkt/o/obj?ifGenerationMatch=1", "", true},
		{"DELETE", json + "b/bkt/o/obj?generation=1", "", true},
		{"DELETE", local + "b/bkt/o/obj", "", false},
		{"PATCH", json + "b/bkt/o/obj", "", false},
		{"PATCH", json + "b/bkt/o/obj?ifMetagenerationMatch=1", "", true},
		{"PATCH", json + "b/bkt/o/obj?ifGenerationMatch=1", "", false},
		{"PUT", json + "b/bkt/o/obj?ifMetagenerationMatch=1", "", true},
		{"PATCH", json + "b/bkt", "", false},
		{"PATCH", json + "b/bkt?ifMetagenerationMatch=1", "", true},
		{"PUT", local + "b/bkt/iam", "", false},
		{"PUT", xml, "", false},
		{"PUT", xml, "X-Goog-If-Generation-Match: 0", true},
		{"DELETE", xml, "", false},
		{"DELETE", "https://bkt.storage.googleapis.com/obj", "", false},
		{"DELETE", "https://bkt.storage.googleapis.com/obj", "X-Goog-If-Generation-Match: 7", true},
		{"PUT", xml, "X-Goog-If-Metageneration-Match: 1", true},

		// Never.
		{"POST", json + "projects/p/hmacKeys", "", false},
		{"PUT", json + "projects/p/hmacKeys/k", "", false},
		{"POST", json + "b/bkt/notificationConfigs", "", false},
		{"POST", json + "b/bkt/acl?ifMetagenerationMatch=1", "", false},
		{"DELETE", json + "b/bkt/defaultObjectAcl/allUsers", "", false},
		{"DELETE", json + "b/bkt/o/obj/acl/allUsers?ifGenerationMatch=1", "", false},
		{"PATCH", json + "b/bkt/o/obj/acl/allUsers?ifMetagenerationMatch=1", "", false},
		{"PUT", xml + "?acl", "X-Goog-If-Metageneration-Match: 1", false},
		{"POST", "https://storage.googleapis.com/batch/storage/v1", "", false},
		{"POST", json, "", false},
		{"POST", json + "other/x", "", false},

		// Other services.
		{"GET", "https://redis.googleapis.com/v1/projects/p/locations/l/instances/i", "", true},
		{"PATCH", "https://redis.googleapis.com/v1/projects/p/locations/l/instances/i", "", false},
		{"DELETE", "https://redis.googleapis.com/v1/projects/p/locations/l/instances/i", "", true},
		{"PUT", "https://example.com/storage/v1x/b/bkt/o/obj", "", true},
		{"POST", "https://doubleclickbidmanager.googleapis.com/v2/queries", "", false},
		{"POST", "https://example.com/orders", "Idempotency-Key: 1", true},
	}
	for _, test := range tests {
		req, err := http.NewRequest(test.method, test.url, nil)
		require.NoError(t, err)
		req.Method = test.method
		if name, value, ok := strings.Cut(test.header, ": "); ok {
			req.Header.Set(name, value)
		}
		if got := backoff.Idempotent(req); got != test.want {
			t.Errorf("Idempotent(%s %s %s) = %v, want %v", test.method, test.url, test.header, got, test.want)
		}
	}
}

// BenchmarkTransport measures a request without a retry, with and without a
// Transport.
func BenchmarkTransport(b *testing.B) {
	ok := roundTripper(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Body: http.NoBody}, nil
	})
	req, err := http.NewRequest("GET", "http://api.example.com/", nil)
	require.NoError(b, err)
	measure := func(b *testing.B, transport http.RoundTripper) {
		b.ReportAllocs()
		for b.Loop() {
			transport.RoundTrip(req)
		}
	}
	b.Run("base", func(b *testing.B) { measure(b, ok) })
	b.Run("backoff", func(b *testing.B) { measure(b, &backoff.Transport{Base: ok}) })
}
