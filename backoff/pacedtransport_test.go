package backoff_test

import (
	"cmp"
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
)

// TestTransportRateReplies checks which replies begin to throttle requests, and which raise or lower
// the rate: refusals of other requests and other failures do neither.
func TestTransportRateReplies(t *testing.T) {
	const object = `{"error":{"message":"The object b/o exceeded the rate limit for object mutation operations","errors":[{"reason":"rateLimitExceeded"}]}}`
	const daily = `{"error":{"errors":[{"reason":"dailyLimitExceeded"}]}}`
	const user = `{"error":{"errors":[{"reason":"userRateLimitExceeded"}]}}`
	const lower, same, higher = -1, 0, 1
	for _, test := range []struct {
		name  string
		reply http.HandlerFunc
		other bool // Rate returns nil for the request
		rate  int
	}{
		{"429", answer(429, ""), false, lower},
		{"403 for a rate", answer(403, user), false, lower},
		{"another request", answer(429, ""), true, same},
		{"one object", answer(429, object), false, higher},
		{"a quota of a day", answer(429, daily), false, higher},
		{"forbidden", answer(403, "no"), false, higher},
		{"success", answer(200, ""), false, higher},
		{"408", answer(408, ""), false, same},
		{"500", answer(500, ""), false, same},
		{"connection broken", hangUp, false, same},
	} {
		for _, before := range []float64{0, 50} {
			rate := new(backoff.Rate)
			rate.Set(before)
			transport := &backoff.Transport{Budget: backoff.Budget{Retries: -1}, Rate: func(*http.Request) *backoff.Rate {
				if test.other {
					return nil
				}
				return rate
			}}
			serve(t, &service{script: []http.HandlerFunc{test.reply}}, transport, func(client *http.Client) {
				rate.Reserve(time.Now())
				time.Sleep(10 * time.Second)
				if resp, err := client.Get("http://api.example.com/"); err == nil {
					resp.Body.Close()
				}
			})
			want := test.rate
			if before == 0 {
				want = max(-test.rate, 0) // a refusal begins to throttle
			}
			if got := rate.PerSecond(); cmp.Compare(got, before) != want {
				t.Errorf("%s: %v requests per second, before %v", test.name, got, before)
			}
		}
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
		if wait := rate.Reserve(time.Now()); wait > time.Second/2 {
			t.Errorf("the next request waits %v, want the time of the one that was not sent", wait)
		}
	})
}

// load makes requests with a Rate from many goroutines for a time, each with a deadline, and
// returns how many were sent in each second, and the longest wait for the Rate.
func load(t *testing.T, r *backoff.Rate, goroutines int, deadline, span time.Duration) (sent []int, longest time.Duration) {
	start := time.Now()
	sent = make([]int, span/time.Second)
	var mu sync.Mutex
	type begin struct{}
	transport := &backoff.Transport{
		Rate: func(*http.Request) *backoff.Rate { return r },
		Base: roundTripper(func(req *http.Request) (*http.Response, error) {
			mu.Lock()
			defer mu.Unlock()
			if second := int(time.Since(start) / time.Second); second < len(sent) {
				sent[second]++
			}
			longest = max(longest, time.Since(req.Context().Value(begin{}).(time.Time)))
			return &http.Response{StatusCode: 503, Body: http.NoBody, Header: http.Header{}}, nil // does not change the rate
		}),
		Budget: backoff.Budget{Retries: -1},
	}
	var requests sync.WaitGroup
	for range goroutines {
		requests.Go(func() {
			for time.Since(start) < span {
				ctx, cancel := context.WithTimeout(context.WithValue(t.Context(), begin{}, time.Now()), deadline)
				req, _ := http.NewRequestWithContext(ctx, "GET", "http://api.example.com/", nil)
				if resp, err := transport.RoundTrip(req); err == nil {
					resp.Body.Close()
				}
				cancel()
			}
		})
	}
	requests.Wait()
	return sent, longest
}

// TestTransportRateDeadlines checks that requests use the whole rate, evenly, even if more of them
// wait than can start before their deadline.
func TestTransportRateDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := new(backoff.Rate)
		r.Set(10)
		sent, _ := load(t, r, 500, 20*time.Second, 5*time.Minute)
		for second, n := range sent {
			if n < 9 || n > 12 {
				t.Errorf("second %d: %d requests sent, want 10", second, n)
			}
		}
	})
}

// TestTransportRateWait checks that no request waits a minute for a low rate, and that those that
// wait too long do not start together.
func TestTransportRateWait(t *testing.T) {
	for _, machines := range []int{1, 200} {
		synctest.Test(t, func(t *testing.T) {
			r := new(backoff.Rate)
			r.Share(0, machines)
			r.Set(1)
			sent, longest := load(t, r, 1000, time.Hour, 3*time.Minute)
			if longest >= backoff.Limit || longest < 30*time.Second {
				t.Errorf("%d machines: a request waits %v, want less than %v, but at least 30s", machines, longest, backoff.Limit)
			}
			for second, n := range sent {
				if n > 60 || second < 30 && n > 2 {
					t.Errorf("%d machines, second %d: %d requests sent", machines, second, n)
				}
			}
		})
	}
}

// TestTransportRateRises checks that requests that wait follow a higher rate.
func TestTransportRateRises(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := new(backoff.Rate)
		r.Set(1)
		time.AfterFunc(5*time.Second, func() { r.Set(100) })
		_, longest := load(t, r, 100, time.Hour, time.Second)
		if longest > 8*time.Second {
			t.Errorf("a request waits %v, want 7s: the rate has risen after 5s", longest)
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
		Budget: backoff.Budget{Retries: -1}, // no retry
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
