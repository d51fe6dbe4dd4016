package upload_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"gcsup/upload"
)

// flow is a transport that records when bytes of request bodies are handed to it.
type flow struct {
	base  http.RoundTripper
	began time.Time

	mu    sync.Mutex
	reads []flowed
}

type flowed struct {
	at time.Duration // since began
	n  int64
}

// observeFlow records the request bodies of w from now on.
func (w *world) observeFlow() *flow {
	f := &flow{base: w.http.Transport, began: time.Now()}
	w.http = &http.Client{Transport: f}
	return f
}

func (f *flow) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil && req.Body != http.NoBody {
		req = req.Clone(req.Context())
		req.Body = &flowBody{req.Body, f}
	}
	return f.base.RoundTrip(req)
}

type flowBody struct {
	io.ReadCloser
	f *flow
}

func (b *flowBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.f.mu.Lock()
	defer b.f.mu.Unlock()
	b.f.reads = append(b.f.reads, flowed{time.Since(b.f.began), int64(n)})
	return n, err
}

// between returns the number of bytes after the time from, until the time to.
func (f *flow) between(from, to time.Duration) (n int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.reads {
		if from < r.at && r.at <= to {
			n += r.n
		}
	}
	return n
}

// limited sets the rate limit of an Uploader.
func limited(limit *upload.RateLimit) func(*upload.Options) {
	return func(o *upload.Options) { o.RateLimit = limit }
}

// rateWays are ways to send a file of at least 2 MiB.
var rateWays = []struct {
	name  string
	saved bool
	with  func(*upload.Options)
}{
	{"one request", false, func(*upload.Options) {}},
	{"session", true, largeChunks},
	{"compose", true, byParts},
}

// TestRateLimitDeadline checks that an upload at a low rate, and one that is paused, ends at its deadline, as interrupted, that the
// rest does not follow without a limit, and that the next call resumes it.
func TestRateLimitDeadline(t *testing.T) {
	t.Parallel()
	content := data(partsLarge)
	for _, way := range rateWays {
		for _, paused := range []bool{false, true} {
			t.Run(fmt.Sprint(way.name, ", paused ", paused), func(t *testing.T) {
				inBubble(t, nil, func(w *world) {
					f, limit, lasts := w.observeFlow(), upload.NewRateLimit(16<<10), 4*time.Second
					up, path := w.uploader(limited(limit), way.with), w.file(content)
					if paused {
						lasts = time.Hour
						time.AfterFunc(4*time.Second, func() { limit.SetLimit(0) })
					}
					ctx, cancel := context.WithTimeout(w.t.Context(), lasts)
					defer cancel()
					began := time.Now()
					res, err := up.File(ctx, path, spec)
					took := time.Since(began)
					interrupted, ok := errors.AsType[*upload.InterruptedError](err)
					if !ok || !errors.Is(err, context.DeadlineExceeded) || interrupted.Resumable != way.saved || res.Resumable != way.saved {
						t.Errorf("%v, want an interrupted upload, saved: %v", err, way.saved)
					}
					if took < lasts || took > lasts+time.Second {
						t.Errorf("took %v of %v", took, lasts)
					}
					// The JSON of some requests is not limited.
					if n := f.between(-1, 2*time.Hour); n < 56<<10 || n > 68<<10 {
						t.Errorf("%d bytes passed in 4 s at 16 KiB/s", n)
					}
					if limit.SetLimit(upload.Unlimited); limit.Limit() != upload.Unlimited {
						t.Errorf("the limit is %d", limit.Limit())
					}
					w.wantSaved(count(way.saved))
					w.done(up.File(w.t.Context(), path, spec))
					w.wantObject("obj", content)
				})
			})
		}
	}
}

// TestRateLimitPause checks that uploads of two Uploaders share a rate, are paused for hours, and then continue,
// without a retry.
func TestRateLimitPause(t *testing.T) {
	t.Parallel()
	content := data(partsLarge)
	for _, way := range rateWays {
		t.Run(way.name, func(t *testing.T) {
			inBubble(t, nil, func(w *world) {
				f, limit := w.observeFlow(), upload.NewRateLimit(1<<20)
				path := w.file(content)
				time.AfterFunc(2*time.Second, func() { limit.SetLimit(0) })
				time.AfterFunc(3*time.Hour, func() { limit.SetLimit(1 << 20) })
				began := time.Now()
				var both sync.WaitGroup
				for _, name := range []string{"a", "b"} {
					up := w.uploader(limited(limit), way.with)
					both.Go(func() {
						w.fails(nil)(up.File(w.t.Context(), path, upload.Spec{Bucket: "bkt", Object: name}))
					})
				}
				both.Wait()
				total := 2 * float64(len(content)) / (1 << 20)
				want := 3*time.Hour + time.Duration((total-2)*float64(time.Second))
				if took := time.Since(began); took < want-time.Second || took > want+time.Second {
					t.Errorf("took %v, want %v", took, want)
				}
				if n := f.between(2*time.Second, 3*time.Hour-1); n != 0 {
					t.Errorf("%d bytes passed in the pause", n)
				}
				if n := w.saw(upload.Waiting); n > 0 {
					t.Errorf("%d retries", n)
				}
				w.wantObject("a", content)
				w.wantObject("b", content)
			})
		})
	}
}
