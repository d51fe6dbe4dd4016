package backoff_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gcsup/backoff"
	"gcsup/fakegcs/memnet"
)

// limited is an HTTP server that serves a number of requests per second, and answers 429 to
// others.
type limited struct {
	perSecond float64
	refusal   string // body of the 429

	mu       sync.Mutex
	start    time.Time
	last     time.Time
	credit   float64
	accepted map[int]int // by second since start
	refused  map[int]int
}

func (l *limited) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body)
	if r.Method == http.MethodGet {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	l.credit = min(l.credit+l.perSecond*now.Sub(l.last).Seconds(), l.perSecond/10)
	l.last = now
	second := int(now.Sub(l.start) / time.Second)
	if l.credit < 1 {
		l.refused[second]++
		w.WriteHeader(http.StatusTooManyRequests)
		io.WriteString(w, l.refusal)
		return
	}
	l.credit--
	l.accepted[second]++
}

// flood makes requests with 100 goroutines through transport to l, until the time is over.
func flood(t *testing.T, l *limited, transport *backoff.Transport, length time.Duration, request func() *http.Request) {
	synctest.Test(t, func(t *testing.T) {
		listener, dial := memnet.Listen()
		server := &http.Server{Handler: l}
		go server.Serve(listener)
		defer server.Close()
		base := &http.Transport{DialContext: dial, MaxIdleConnsPerHost: 100}
		defer base.CloseIdleConnections()
		transport.Base = base
		l.start, l.last = time.Now(), time.Now()
		l.accepted, l.refused = map[int]int{}, map[int]int{}
		ctx, cancel := context.WithTimeout(t.Context(), length)
		defer cancel()
		var clients sync.WaitGroup
		for range 100 {
			clients.Go(func() {
				for ctx.Err() == nil {
					resp, err := transport.RoundTrip(request().WithContext(ctx))
					if err == nil {
						resp.Body.Close()
					}
					time.Sleep(20 * time.Millisecond)
				}
			})
		}
		clients.Wait()
	})
}

func sum(counts map[int]int, from, to int) (n int) {
	for second := from; second < to; second++ {
		n += counts[second]
	}
	return n
}

// TestTransportRate checks that the requests of a Transport with a Rate are hardly refused
// after a minute, and use the rate of the server.
func TestTransportRate(t *testing.T) {
	const perSecond, length = 200, 90
	for _, test := range []struct {
		name   string
		method string
		once   bool // the request is not retried
	}{{"retried", "PUT", false}, {"made once", "POST", true}} {
		t.Run(test.name, func(t *testing.T) {
			l, rate := &limited{perSecond: perSecond}, new(backoff.Rate)
			transport := &backoff.Transport{Rate: func(*http.Request) *backoff.Rate { return rate }}
			flood(t, l, transport, length*time.Second, func() *http.Request {
				req, _ := http.NewRequest(test.method, "http://api.example.com/", strings.NewReader("x"))
				return req
			})
			accepted, refused := sum(l.accepted, 60, length), sum(l.refused, 60, length)
			if share := float64(refused) / float64(refused+accepted); share > 0.01 {
				t.Errorf("%.2f %% of the requests are refused after a minute, want at most 1 %%", 100*share)
			}
			if accepted < 9*perSecond*(length-60)/10 {
				t.Errorf("%d requests in %d s, want %d", accepted, length-60, perSecond*(length-60))
			}
		})
	}
}

// TestTransportRateOthers checks what does not pace requests: refusals of other requests, of one
// object, and other failures.
func TestTransportRateOthers(t *testing.T) {
	const object = `{"error":{"message":"The object b/o exceeded the rate limit for object mutation operations","errors":[{"reason":"rateLimitExceeded"}]}}`
	const daily = `{"error":{"errors":[{"reason":"dailyLimitExceeded"}]}}`
	const user = `{"error":{"errors":[{"reason":"userRateLimitExceeded"}]}}`
	for _, test := range []struct {
		name  string
		reply http.HandlerFunc
		other bool // Rate returns nil for the request
		paced bool
	}{
		{"429", answer(429, ""), false, true},
		{"403 for a rate", answer(403, user), false, true},
		{"another request", answer(429, ""), true, false},
		{"one object", answer(429, object), false, false},
		{"a quota of a day", answer(429, daily), false, false},
		{"forbidden", answer(403, "no"), false, false},
		{"503", answer(503, ""), false, false},
		{"connection broken", hangUp, false, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			rate := new(backoff.Rate)
			transport := &backoff.Transport{Policy: plain, Rate: func(*http.Request) *backoff.Rate {
				if test.other {
					return nil
				}
				return rate
			}}
			serve(t, &service{script: []http.HandlerFunc{test.reply}}, transport, func(client *http.Client) {
				resp, err := client.Get("http://api.example.com/")
				if err != nil {
					t.Fatal(err)
				}
				resp.Body.Close()
				if got := rate.PerSecond() > 0; got != test.paced {
					t.Errorf("%v requests per second, want paced %v", rate.PerSecond(), test.paced)
				}
			})
		})
	}
}

// TestTransportRateContext checks that a request whose context ends while it waits for the rate
// is not sent, and that its body is closed.
func TestTransportRateContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rate := new(backoff.Rate)
		rate.Set(1)
		rate.Reserve(time.Now())
		transport := &backoff.Transport{
			Rate: func(*http.Request) *backoff.Rate { return rate },
			Base: roundTripper(func(*http.Request) (*http.Response, error) {
				t.Error("the request was sent")
				return nil, io.EOF
			}),
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		var closed int
		req, _ := http.NewRequestWithContext(ctx, "POST", "http://api.example.com/", countedBody{strings.NewReader("x"), &closed})
		start := time.Now()
		if _, err := transport.RoundTrip(req); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second/2 || closed != 1 {
			t.Errorf("RoundTrip = %v after %v, body closed %d times, want the deadline after 500ms and once", err, time.Since(start), closed)
		}
	})
}

// This example paces the requests that write, and no others.
func ExampleTransport_rate() {
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	defer api.Close()

	writes := new(backoff.Rate)
	client := &http.Client{Transport: &backoff.Transport{
		Budget: backoff.Budget{Tries: -1}, // no retry
		Rate: func(req *http.Request) *backoff.Rate {
			if req.Method == http.MethodGet {
				return nil
			}
			return writes
		},
	}}
	for _, method := range []string{"GET", "PUT"} {
		req, err := http.NewRequest(method, api.URL+"/v1/documents/1", nil)
		if err != nil {
			fmt.Println(err)
			return
		}
		resp, err := client.Do(req)
		if err != nil {
			fmt.Println(err)
			return
		}
		resp.Body.Close()
		fmt.Println(method, resp.StatusCode, writes.PerSecond(), "writes per second")
	}
	// Output:
	// GET 429 0 writes per second
	// PUT 429 100 writes per second
}
