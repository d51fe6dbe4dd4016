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
	"gcsup/fakegcs"
	"gcsup/fakegcs/memnet"
)

// counts are replies by second since the start.
type counts [90]struct{ accepted, refused int }

func (c *counts) sum(from, to int) (accepted, refused int) {
	for _, n := range c[from:to] {
		accepted += n.accepted
		refused += n.refused
	}
	return accepted, refused
}

// flood inserts objects for the seconds of counts, as many at a time as a Limiter permits, into a
// bucket that accepts perSecond of them.
func flood(t *testing.T, perSecond int, transport *backoff.Transport, query string) *counts {
	var got counts
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var mu sync.Mutex
		gcs, err := fakegcs.New(&fakegcs.Options{
			CreateBuckets: true, Discard: true, NoMD5: true, KeepRequests: -1, Latency: 150 * time.Millisecond, BucketRate: perSecond,
			OnRequest: func(r fakegcs.Request) {
				mu.Lock()
				defer mu.Unlock()
				switch n := &got[min(int(time.Since(start)/time.Second), len(got)-1)]; r.Status {
				case 200:
					n.accepted++
				case 429:
					n.refused++
				case 0: // the client has ended
				default:
					t.Errorf("status %d", r.Status)
				}
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		listener, dial := memnet.Listen()
		server := &http.Server{Handler: gcs}
		go server.Serve(listener)
		base := &http.Transport{DialContext: dial, MaxIdleConnsPerHost: 1000}
		transport.Base = base

		limiter, changed := new(backoff.Limiter), make(chan struct{}, 1)
		transport.Observe = func(_ *http.Request, a backoff.Attempt) {
			if a.Err != nil && !a.Blocked {
				limiter.Refused(time.Now())
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(len(got))*time.Second)
		defer cancel()
		var requests sync.WaitGroup
		for i := 0; ctx.Err() == nil; i++ {
			for ctx.Err() == nil && !limiter.Start(time.Now()) {
				select {
				case <-changed:
				case <-ctx.Done():
				}
			}
			requests.Go(func() {
				url := fmt.Sprintf("http://fake.invalid/upload/storage/v1/b/bkt/o?uploadType=media&name=%d%s", i, query)
				req, _ := http.NewRequestWithContext(ctx, "POST", url, strings.NewReader("x"))
				if resp, err := transport.RoundTrip(req); err == nil {
					io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
				}
				limiter.Ended(time.Now(), 1)
				select {
				case changed <- struct{}{}:
				default:
				}
			})
		}
		requests.Wait()
		base.CloseIdleConnections()
		gcs.Close()
		server.Close()
		time.Sleep(time.Minute) // timers of net/http
	})
	return &got
}

// TestTransportRate checks that the requests of a Transport with a Rate are hardly refused by a
// busy bucket after a minute, and use its rate, together with a Limiter.
func TestTransportRate(t *testing.T) {
	const perSecond = 60
	for name, query := range map[string]string{"retried": "&ifGenerationMatch=0", "made once": ""} {
		t.Run(name, func(t *testing.T) {
			rate := new(backoff.Rate)
			got := flood(t, perSecond, &backoff.Transport{Rate: func(*http.Request) *backoff.Rate { return rate }}, query)
			if _, refused := got.sum(0, 60); refused == 0 {
				t.Error("no request is refused at first")
			}
			accepted, refused := got.sum(60, len(got))
			if share := float64(refused) / float64(refused+accepted); share > 0.01 {
				t.Errorf("%.2f %% of the requests are refused after a minute, want at most 1 %%", 100*share)
			}
			if want := perSecond * (len(got) - 60); accepted < 9*want/10 {
				t.Errorf("%d requests after a minute, want 0.9 of %d", accepted, want)
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
