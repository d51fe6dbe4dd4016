package backoff_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"gcsup/backoff"
)

// This example shows the waits of the zero Policy for the middle of the random
// range. A program passes rand.Float64() instead of 0.5.
func ExamplePolicy_Delay() {
	var policy backoff.Policy
	for n := range 7 {
		fmt.Print(policy.Delay(n, 0.5), " ")
	}
	// Output: 1.5s 2.5s 4.5s 8.5s 16.5s 32s 32s
}

// quick has short waits, so that the examples do not wait for seconds.
var quick = backoff.Policy{Initial: time.Millisecond, Jitter: backoff.FullJitter}

// This example is a program with its own retry loop. It stops after one minute
// without progress.
func ExampleWaiter() {
	attempts := 0
	attempt := func() error {
		if attempts++; attempts < 3 {
			return errors.New("connection reset")
		}
		return nil
	}

	waiter := backoff.Waiter{Policy: quick, Budget: backoff.Budget{For: time.Minute}}
	defer waiter.Close()
	for {
		err := attempt()
		if err == nil {
			waiter.Succeeded()
			break
		}
		if stop := waiter.Wait(context.Background(), backoff.Failure{}); stop != nil {
			fmt.Println(errors.Join(stop, err))
			return
		}
	}
	fmt.Println(attempts, "attempts")
	// Output: 3 attempts
}

// This example is a client of Memorystore's REST API. It retries every
// idempotent request, here one that gets 503 and 429 first.
func ExampleTransport_memorystore() {
	answers := []int{503, 429, 200}
	redis := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(answers[0])
		answers = answers[1:]
		io.WriteString(w, `{"state": "READY"}`)
	}))
	defer redis.Close()

	var counters backoff.Counters
	client := &http.Client{Transport: &backoff.Transport{
		Policy:   quick, // a program would use the zero Policy
		Counters: &counters,
		// With credentials: Base: &oauth2.Transport{Source: tokens},
	}}

	resp, err := client.Get(redis.URL + "/v1/projects/p/locations/europe-west1/instances/cache")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	fmt.Println(resp.StatusCode, string(body))
	fmt.Println("retries by cause:", counters.Counts().Causes)
	// Output:
	// 200 {"state": "READY"}
	// retries by cause: map[429:1 503:1]
}

// This example changes an object's metadata. The request is retried if it has a
// precondition, and is made once if it has none.
func ExampleTransport_metadata() {
	requests := 0
	storage := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if requests++; requests%2 == 1 {
			http.Error(w, "try later", http.StatusServiceUnavailable)
		}
	}))
	defer storage.Close()

	client := &http.Client{Transport: &backoff.Transport{Policy: quick}}
	for _, precondition := range []string{"", "?ifMetagenerationMatch=3"} {
		requests = 0
		url := storage.URL + "/storage/v1/b/my-bucket/o/photo.jpg" + precondition
		req, err := http.NewRequest("PATCH", url, strings.NewReader(`{"cacheControl": "no-store"}`))
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
		fmt.Println(resp.StatusCode, "after", requests, "requests")
	}
	// Output:
	// 503 after 1 requests
	// 200 after 2 requests
}

// This example retries a batch that succeeds in part with the remaining items.
// Progress resets the count of failures.
func ExampleRetry_batch() {
	// write stores at most two items per call, and none in every third call.
	calls := 0
	write := func(items []string) (unprocessed []string) {
		if calls++; calls%3 == 0 {
			return items
		}
		return items[min(2, len(items)):]
	}

	items := strings.Split("a b c d e f g", " ")
	policy := quick // a program would use backoff.Named("scaled")
	_, err := backoff.Retry(context.Background(), policy, func(context.Context) (struct{}, error) {
		left := write(items)
		progress := len(left) < len(items)
		items = left
		err := fmt.Errorf("%d items left", len(items))
		switch {
		case len(items) == 0:
			return struct{}{}, nil
		case progress:
			return struct{}{}, backoff.Progress(err)
		}
		return struct{}{}, backoff.Transient.Mark(err)
	}, &backoff.Options{
		Observe: func(a backoff.Attempt) { fmt.Println(a.Number, a.Err) },
	})
	fmt.Println("error:", err)
	// Output:
	// 1 5 items left
	// 2 3 items left
	// 3 3 items left
	// 4 1 items left
	// 5 <nil>
	// error: <nil>
}

// This example shows that a permanent error is returned without a retry.
func ExampleRetry_permanent() {
	_, err := backoff.Retry(context.Background(), backoff.Policy{}, func(context.Context) (string, error) {
		return "", &backoff.StatusError{Code: 403, Reason: "dailyLimitExceeded", Message: "Quota is used up."}
	}, nil)
	fmt.Println(err)
	fmt.Println(errors.Is(err, backoff.ErrPermanent))
	// Output:
	// backoff: 1 attempt: permanent error: HTTP 403 Forbidden (dailyLimitExceeded): Quota is used up.
	// true
}
