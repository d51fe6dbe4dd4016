package fakegcs_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"gcsup/fakegcs"
)

// storm makes writes at a rate for a time, and counts the replies by status.
func (w *world) storm(perSecond int, length time.Duration, name func(i int) string) map[int]int {
	var mu sync.Mutex
	var requests sync.WaitGroup
	counts := map[int]int{}
	for i := range perSecond * int(length/time.Second) {
		requests.Go(func() {
			a := w.do("POST", "/upload/storage/v1/b/bkt/o?uploadType=media&name="+name(i), nil)
			mu.Lock()
			defer mu.Unlock()
			counts[a.StatusCode]++
		})
		time.Sleep(time.Second / time.Duration(perSecond))
	}
	requests.Wait()
	return counts
}

// TestBucketRate checks the rate of a bucket, before and after its names are divided, on a server
// with real connections in virtual time.
func TestBucketRate(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	r := rand.New(rand.NewPCG(1, 2))
	for _, test := range []struct {
		name  string
		names func(i int) string
		later int // accepted per second after two minutes
	}{
		{"random names", func(int) string {
			mu.Lock()
			defer mu.Unlock()
			return fmt.Sprintf("%08x", r.Uint32())
		}, 40},
		{"names that grow", func(i int) string { return time.Now().Format(time.RFC3339Nano) }, 20},
	} {
		t.Run(test.name, func(t *testing.T) {
			opts := &fakegcs.Options{BucketRate: 20, SplitAfter: time.Minute, Discard: true, NoMD5: true}
			srv, tr := &http.Server{}, &http.Transport{MaxIdleConnsPerHost: 10}
			bubbleOf(t, opts, srv, tr, func(w *world) {
				first := w.storm(50, 50*time.Second, test.names)
				if got := first[200]; got < 980 || got > 1020 || first[429] != 2500-got {
					t.Errorf("replies in 50 s: %v, want 1,000 with 200 and the others with 429", first)
				}
				w.storm(50, 70*time.Second, test.names)
				later := w.storm(40, 50*time.Second, test.names)
				if got := later[200]; got < 49*test.later || got > 52*test.later {
					t.Errorf("replies in 50 s after two minutes: %v, want %d with 200", later, 50*test.later)
				}
			})
		})
	}
}

// TestBucketRateReplies checks which requests count, and what the service answers.
func TestBucketRateReplies(t *testing.T) {
	t.Parallel()
	bubble(t, &fakegcs.Options{BucketRate: 1, SplitAfter: 10 * time.Second}, func(w *world) {
		w.createBucket(fakegcs.Bucket{Name: "other"})
		// Each request comes 1 ms after one that uses the write of a second.
		const object = "/storage/v1/b/bkt/o/obj"
		const insert = "/upload/storage/v1/b/bkt/o?uploadType=media&name=obj"
		for _, test := range []struct {
			name, method, target string
			limited              bool
		}{
			{"insert", "POST", insert, true},
			{"start", "POST", "/upload/storage/v1/b/bkt/o?uploadType=resumable&name=obj", true},
			{"XML insert", "PUT", "/bkt/obj", true},
			{"multipart upload", "POST", "/bkt/obj?uploads", true},
			{"patch", "PATCH", object, true},
			{"compose", "POST", object + "/compose", true},
			{"rewrite", "POST", "/storage/v1/b/other/o/obj/rewriteTo/b/bkt/o/obj", true},
			{"rewrite into another bucket", "POST", object + "/rewriteTo/b/other/o/obj", false},
			{"delete", "DELETE", object, true},
			{"XML delete", "DELETE", "/bkt/obj", true},
			{"metadata", "GET", object, false},
			{"read", "GET", object + "?alt=media", false},
			{"list", "GET", "/storage/v1/b/bkt/o", false},
			{"bucket", "GET", "/storage/v1/b/bkt", false},
			{"another bucket", "POST", "/upload/storage/v1/b/other/o?uploadType=media&name=obj", false},
		} {
			time.Sleep(time.Minute)
			w.want(200, "", "POST", insert, nil)
			time.Sleep(time.Millisecond)
			if a := w.do(test.method, test.target, nil); (a.StatusCode == 429) != test.limited {
				t.Errorf("%s = %d, want 429: %v", test.name, a.StatusCode, test.limited)
			}
		}

		// The bodies that were recorded from the service.
		if a := w.do("POST", insert, nil); a.StatusCode != 429 || !strings.Contains(a.body, `"message": "Your request-rate on the bucket has ramped up too fast.`) ||
			!strings.Contains(a.body, `"domain": "usageLimits"`) || !strings.Contains(a.body, `"reason": "rateLimitExceeded"`) {
			t.Errorf("JSON: %d %s", a.StatusCode, a.body)
		}
		if a := w.do("PUT", "/bkt/obj", nil); a.StatusCode != 429 || !strings.Contains(a.body, "<Code>SlowDown</Code><Message>You have exceeded your bucket&#39;s IO capacity.") ||
			!strings.Contains(a.body, "<Details>Your request-rate on the bucket has ramped up too fast.") {
			t.Errorf("XML: %d %s", a.StatusCode, a.body)
		}
		for i := range 40 {
			time.Sleep(time.Second / 2)
			w.do("POST", fmt.Sprintf("/upload/storage/v1/b/bkt/o?uploadType=media&name=%03d", i), nil)
		}
		w.do("POST", "/upload/storage/v1/b/bkt/o?uploadType=media&name=040", nil)
		w.want(429, `"message": "Your request distribution is too uneven across the key-ranges in your bucket.`, "POST", "/upload/storage/v1/b/bkt/o?uploadType=media&name=041", nil)
	})
}
