package upload_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gcsup/backoff"
	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/require"
	"gcsup/internal/testsize"
	"gcsup/upload"
)

// endless yields jobs of one file for as long as they are read.
func (w *world) endless(size int64) iter.Seq[upload.Job] {
	job := w.jobs(1, size)[0]
	return func(yield func(upload.Job) bool) {
		for i := 0; ; i++ {
			job.Spec.Object = fmt.Sprint(i)
			if !yield(job) {
				return
			}
		}
	}
}

// limited yields the first n jobs of endless.
func (w *world) limited(n int, size int64) iter.Seq[upload.Job] {
	all := w.endless(size)
	return func(yield func(upload.Job) bool) {
		left := n
		for job := range all {
			if left == 0 || !yield(job) {
				return
			}
			left--
		}
	}
}

// flights counts the requests in flight.
type flights struct {
	http.RoundTripper
	now, most atomic.Int64
}

func (f *flights) RoundTrip(req *http.Request) (*http.Response, error) {
	n := f.now.Add(1)
	defer f.now.Add(-1)
	for most := f.most.Load(); n > most && !f.most.CompareAndSwap(most, n); most = f.most.Load() {
	}
	return f.RoundTripper.RoundTrip(req)
}

// countFlights counts the requests of the uploaders that are made from now on.
func (w *world) countFlights() *flights {
	f := &flights{RoundTripper: w.http.Transport}
	w.http = &http.Client{Transport: f}
	return f
}

// TestAutoJobs checks that a batch uses nine tenths of a link within ten seconds, whatever the
// latency is.
func TestAutoJobs(t *testing.T) {
	t.Parallel()
	const (
		size    = 4 << 10
		link    = 1200       // files per second
		perFile = size + 260 // bytes on the link
	)
	for _, latency := range []time.Duration{50 * time.Millisecond, 10 * time.Millisecond, 150 * time.Millisecond, 500 * time.Millisecond}[:testsize.Full(4, 1)] {
		t.Run(latency.String(), func(t *testing.T) {
			opts := &fakegcs.Options{Latency: latency, Discard: true, NoMD5: true, TotalRate: link * perFile, KeepRequests: -1}
			inBubble(t, opts, func(w *world) {
				start := time.Now()
				var seconds [13]int
				for _, err := range w.uploader(withoutStore, unobserved).Files(w.t.Context(), w.endless(size), nil) {
					require.NoError(t, err)
					second := int(time.Since(start) / time.Second)
					seconds[second]++
					if second >= 3 && (seconds[second-1]+seconds[second-2])/2 >= link*9/10 {
						t.Logf("reached after %d s: %v", second, seconds[:second])
						return
					}
					if second == len(seconds)-1 {
						break
					}
				}
				t.Errorf("files in each second: %v, want %d for two seconds within 10 s", seconds, link*9/10)
			})
		})
	}
}

// TestAutoJobsSlowSource checks that a batch uses a link even if a file takes longer to open than to
// send.
func TestAutoJobsSlowSource(t *testing.T) {
	t.Parallel()
	const link = 600 // files per second
	opts := &fakegcs.Options{Latency: 10 * time.Millisecond, Discard: true, NoMD5: true, TotalRate: link * (4<<10 + 260), KeepRequests: -1}
	inBubble(t, opts, func(w *world) {
		up := withCall(w.uploader(withoutStore, unobserved), upload.CallOptions{Accept: func(string, fs.FileInfo) error {
			time.Sleep(150 * time.Millisecond)
			return nil
		}})
		start, n := time.Now(), 0
		for _, err := range up.Files(w.t.Context(), w.endless(4<<10), nil) {
			require.NoError(t, err)
			since := time.Since(start)
			if since > 10*time.Second {
				break
			}
			if since > 8*time.Second {
				n++
			}
		}
		if n < 2*link*9/10 {
			t.Errorf("%d files in the ninth and tenth second, want %d", n, 2*link*9/10)
		}
	})
}

// TestAutoJobsShared checks that batches which share a limiter end, and leave it as they found it, whatever they
// do and however they end.
func TestAutoJobsShared(t *testing.T) {
	t.Parallel()
	seed := testsize.Seed(t)
	for i := range testsize.Full(60, 12) {
		inBubble(t, &fakegcs.Options{Latency: 10 * time.Millisecond}, func(w *world) {
			random := rand.New(rand.NewPCG(seed, uint64(i)))
			jobs := slices.Collect(w.limited(60, 100<<10))
			slices.SortFunc(jobs, func(a, b upload.Job) int { return strings.Compare(a.Spec.Object, b.Spec.Object) })
			files(w.t.Context(), w.uploader(withoutStore), jobs[:40], nil)
			w.addFaults(faults.Fault{Match: faults.Match{Op: faults.OpInsert}, Times: 20, Do: faults.Action{Effect: faults.EffectStatus, Status: 503}})
			small := &backoff.Limiter{First: 1 + random.IntN(4), Max: 4}
			up := w.uploader(withoutStore, unobserved)
			var group sync.WaitGroup
			for range 3 {
				opts := upload.BatchOptions{
					Skip: []upload.Skip{upload.SkipNothing, upload.SkipExisting, upload.SkipIdentical}[random.IntN(3)], DryRun: random.IntN(4) == 0,
					Jobs: []int{0, 1, 3}[random.IntN(3)],
				}
				up := upload.Tuned(up, small, []int64{1, 150 << 10, 0}[random.IntN(3)])
				if random.IntN(3) > 0 {
					opts.Listing = &upload.Listing{Bucket: []string{"bkt", "missing"}[random.IntN(2)]}
				}
				stop, slow, cancelAfter := random.IntN(90), time.Duration(random.IntN(3))*50*time.Millisecond, time.Duration(random.IntN(4))*100*time.Millisecond
				compare := random.IntN(4) == 0
				group.Go(func() {
					ctx, cancel := context.WithTimeout(w.t.Context(), time.Hour)
					defer cancel()
					if cancelAfter > 0 {
						defer time.AfterFunc(cancelAfter, cancel).Stop()
					}
					n, results := 0, up.Files(ctx, slices.Values(jobs), &opts)
					if compare {
						results = up.Compare(ctx, slices.Values(jobs), &opts)
					}
					for range results {
						if n++; n == stop {
							break
						}
						time.Sleep(slow)
					}
					want := len(jobs)
					if stop > 0 {
						want = min(stop, want)
					}
					unlisted := compare && opts.Listing != nil && opts.Listing.Bucket == "missing" // ends the comparison
					if ctx.Err() == nil && n != want && !unlisted {
						w.t.Errorf("%+v: %d results, want %d", opts, n, want)
					}
					if errors.Is(ctx.Err(), context.DeadlineExceeded) {
						w.t.Errorf("%+v: not finished after an hour", opts)
					}
				})
			}
			group.Wait()
			if n := small.InFlight(); n != 0 {
				w.t.Errorf("%d files count as in flight", n)
			}
		})
	}
}

// TestAutoJobsGrowing checks that a batch whose files grow uses more connections. Each doubles the bytes
// per second, while the files per second stay the same.
func TestAutoJobsGrowing(t *testing.T) {
	t.Parallel()
	inBubble(t, &fakegcs.Options{Rate: 64 << 10, Discard: true, NoMD5: true}, func(w *world) {
		limiter := new(backoff.Limiter)
		jobs := func(yield func(upload.Job) bool) {
			for size := int64(2 << 10); size <= mib; size *= 2 {
				path := filepath.Join(w.dir, fmt.Sprint("grows", size))
				require.NoError(t, os.WriteFile(path, data(size), 0o600))
				for i := range 40 {
					if !yield(upload.Job{Path: path, Spec: upload.Spec{Bucket: "bkt", Object: fmt.Sprint(size, i)}}) {
						return
					}
				}
			}
		}
		highest := 0
		for _, err := range upload.Tuned(w.uploader(withoutStore, unobserved), limiter, 0).Files(w.t.Context(), jobs, nil) {
			require.NoError(t, err)
			highest = max(highest, limiter.Limit())
		}
		if highest < 128 {
			t.Errorf("at most %d files at a time, want 128", highest)
		}
	})
}

// TestAutoJobsOutage checks that uploads and a batch of small files outlast ten minutes without
// the service, that they make few requests meanwhile, and that the rate of requests grows again
// without a burst.
func TestAutoJobsOutage(t *testing.T) {
	t.Parallel()
	skipShort(t)
	const (
		before, outage = 3250 * time.Millisecond, 10 * time.Minute // between two replies
		latency        = 500 * time.Millisecond
		uploads        = 32
	)
	for _, tt := range []struct {
		do      faults.Action
		count   int
		perFile float64 // requests during the outage, of each file in flight
	}{
		{faults.Action{Effect: faults.EffectStatus, Status: 503}, testsize.Full(10_000, 3_000), 1.2},
		{faults.Action{Effect: faults.EffectReset}, 3_000, 8}, // net/http and the uploader repeat a request at once if a reused connection is reset, and the next idle one may be reset, too
	}[:testsize.Full(2, 1)] {
		// Each connection needs nine seconds for a large file, so that all of them are under way.
		inBubble(t, &fakegcs.Options{Latency: latency, Rate: 1 << 20, Discard: true, NoMD5: true, KeepRequests: 100_000}, func(w *world) {
			f := w.countFlights()
			up := w.uploader(withoutStore, unobserved, func(o *upload.Options) { o.RetryFor = time.Hour })
			start := time.Now()
			var inFlight int64
			time.AfterFunc(before, func() {
				inFlight = f.now.Load()
				w.down(tt.do)
			})
			time.AfterFunc(before+outage, w.srv.ClearFaults)
			path := w.jobs(1, 9*mib)[0].Path
			var wg sync.WaitGroup
			for i := range uploads {
				wg.Go(func() {
					if _, err := up.File(w.t.Context(), path, upload.Spec{Bucket: "bkt", Object: fmt.Sprint("large", i)}); err != nil {
						t.Error(err)
					}
				})
			}
			n := 0
			for _, err := range up.Files(w.t.Context(), w.limited(tt.count, 100), nil) {
				require.NoError(t, err)
				n++
			}
			wg.Wait()
			during, seconds := 0, make([]int, int(time.Since(start)/time.Second)+1)
			for _, at := range w.requests(start) {
				if at > before && at < before+outage {
					during++
				}
				seconds[at/time.Second]++
			}
			after := seconds[(before+outage)/time.Second:]
			t.Logf("%s: %d requests in flight, %d requests during the outage, %d files, %v and then %v", tt.do.Effect, inFlight, during, n, seconds[:3], after)
			if n != tt.count {
				t.Errorf("%s: %d files, want %d", tt.do.Effect, n, tt.count)
			}
			if most := int(tt.perFile * float64(inFlight)); during > most {
				t.Errorf("%s: %d requests during the outage, want at most %d", tt.do.Effect, during, most)
			}
			highest := seconds[2]
			for i, requests := range after {
				if requests > 2*highest+uploads {
					t.Errorf("%s: %d requests in second %d after the outage, want at most twice as many as before", tt.do.Effect, requests, i)
				}
				highest = max(highest, requests)
			}
		})
	}
}

// TestAutoJobsRefused checks that a batch uses fewer connections after 429 and 503, but not after
// failures of one object, and of the network.
func TestAutoJobsRefused(t *testing.T) {
	t.Parallel()
	half := func(do faults.Action) faults.Fault {
		return faults.Fault{Match: faults.Match{Op: faults.OpInsert}, Times: 400, Do: do}
	}
	const hot = "The object bkt/0 exceeded the rate limit for object mutation operations (create, update, and delete)."
	for _, tt := range []struct {
		name   string
		fault  faults.Fault
		limits [2]int
	}{
		{"503", half(faults.Action{Effect: faults.EffectStatus, Status: 503}), [2]int{1, 16}},
		{"429", half(faults.Action{Effect: faults.EffectStatus, Status: 429, Reason: "bucketRateLimitExceeded"}), [2]int{1, 16}},
		{"403", half(faults.Action{Effect: faults.EffectStatus, Status: 403, Reason: "userRateLimitExceeded"}), [2]int{1, 16}},
		{"one object", half(faults.Action{Effect: faults.EffectStatus, Status: 429, Reason: "rateLimitExceeded", Message: hot}), [2]int{32, 1024}},
		{"500", half(faults.Action{Effect: faults.EffectStatus, Status: 500}), [2]int{32, 1024}},
		{"reset", half(faults.Action{Effect: faults.EffectReset}), [2]int{32, 1024}},
	} {
		inBubble(t, &fakegcs.Options{Latency: 100 * time.Millisecond, Discard: true, NoMD5: true}, func(w *world) {
			w.addFaults(tt.fault)
			limiter := new(backoff.Limiter)
			up := w.uploader(withoutStore, unobserved, func(o *upload.Options) { o.Breaker, o.RetryFor = backoff.NoBreaker, time.Hour })
			ctx, cancel := context.WithTimeout(w.t.Context(), 10*time.Second)
			defer cancel()
			for range upload.Tuned(up, limiter, 0).Files(ctx, w.limited(1000, 100), nil) {
			}
			if got := limiter.Limit(); got < tt.limits[0] || got > tt.limits[1] {
				t.Errorf("%s: limit %d, want %d to %d", tt.name, got, tt.limits[0], tt.limits[1])
			}
			if n := limiter.InFlight(); n != 0 {
				t.Errorf("%s: %d in flight at the end", tt.name, n)
			}
		})
	}
}

// TestAutoJobsMemory checks that the bytes of all files that are sent at a time, and the buffers of
// their connections, stay within the memory of a batch.
func TestAutoJobsMemory(t *testing.T) {
	t.Parallel()
	inBubble(t, &fakegcs.Options{Latency: time.Second, Discard: true, NoMD5: true}, func(w *world) {
		f := w.countFlights()
		got := 0
		for _, err := range upload.Tuned(w.uploader(withoutStore, unobserved), nil, 100*80<<10).Files(w.t.Context(), w.limited(600, 16<<10), nil) {
			require.NoError(t, err)
			got++
		}
		if most := f.most.Load(); got != 600 || most < 90 || most > 100 {
			t.Errorf("%d files, at most %d at a time, want 90 to 100", got, most)
		}
		// A file larger than the memory is uploaded alone.
		if got := files(w.t.Context(), upload.Tuned(w.uploader(withoutStore), nil, 1000), w.jobs(3, 16<<10), nil); ended(got, nil) != 3 {
			t.Errorf("%d larger files were uploaded", ended(got, nil))
		}
	})
}

// TestAutoJobsLarge checks that a batch sends as many large files at a time as raise the
// throughput, long before the first of them ends: all of them if each connection is slow, and few if
// one connection fills the link.
func TestAutoJobsLarge(t *testing.T) {
	t.Parallel()
	skipShort(t)
	for _, tt := range []struct {
		name    string
		opts    fakegcs.Options
		highest [2]int64
		longest time.Duration
	}{
		// Four at a time would take 120 s.
		{"slow connections", fakegcs.Options{Rate: 1 << 20}, [2]int64{16, 64}, 60 * time.Second},
		{"slow link", fakegcs.Options{TotalRate: 16 << 20}, [2]int64{4, 9}, 36 * time.Second},
	} {
		tt.opts.Latency, tt.opts.Discard, tt.opts.NoMD5 = 50*time.Millisecond, true, true
		inBubble(t, &tt.opts, func(w *world) {
			f := w.countFlights()
			start := time.Now()
			for _, err := range w.uploader(withoutStore, unobserved).Files(w.t.Context(), w.limited(20, 24*mib), nil) {
				require.NoError(t, err)
			}
			if most, took := f.most.Load(), time.Since(start); most < tt.highest[0] || most > tt.highest[1] || took > tt.longest {
				t.Errorf("%s: at most %d at a time in %v, want %d to %d in %v", tt.name, most, took, tt.highest[0], tt.highest[1], tt.longest)
			}
		})
	}
}

// TestAutoJobsNotTried checks that files that wait for their turn while the service fails are not
// tried.
func TestAutoJobsNotTried(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(w *world) {
		w.addFaults(status(404, faults.Match{Op: faults.OpInsert}))
		got := files(w.t.Context(), upload.Tuned(w.uploader(withoutStore), &backoff.Limiter{First: 1, Max: 1}, 0), slices.Collect(w.limited(100, 10)), nil)
		if n := len(w.srv.Requests()); n != 1 || ended(got, upload.ErrNotTried) != 99 {
			t.Errorf("%d requests, %d files not tried, want 1 and 99", n, ended(got, upload.ErrNotTried))
		}
	})
}

// TestAutoJobsNamed checks that the results of files that were interrupted before their turn have their paths.
func TestAutoJobsNamed(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(w *world) {
		limiter := &backoff.Limiter{First: 1, Max: 1}
		if err := limiter.Acquire(w.t.Context()); err != nil { // the turn of another program
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(w.t.Context(), time.Second)
		defer cancel()
		n := 0
		for res, err := range upload.Tuned(w.uploader(withoutStore), limiter, 0).Files(ctx, w.limited(5, 10), nil) {
			if n++; err == nil || res.Path == "" {
				t.Errorf("path %q: %v", res.Path, err)
			}
		}
		if n == 0 {
			t.Error("no file waited")
		}
	})
}

func unobserved(o *upload.Options) { o.Observer = nil }

// TestMemoryAndTurn checks that files whose destinations are listed and files whose destinations are
// not do not wait for each other: for memory, and for a place of the limiter.
func TestMemoryAndTurn(t *testing.T) {
	type test struct {
		name   string
		files  int
		listed func(i int) bool
		size   int64
		small  *backoff.Limiter
		memory int64
	}
	tests := []test{
		{"small limits", 60, func(i int) bool { return i%2 == 0 }, 900 << 10, &backoff.Limiter{First: 2, Max: 2}, 1 << 20},
	}
	if testsize.Full(1, 0) == 1 { // 4 GB
		tests = append(tests, test{"defaults", 500, func(i int) bool { return i%71 < 7 }, 8 << 20, nil, 0})
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, &fakegcs.Options{Latency: 5 * time.Millisecond, Rate: 64 << 20, Discard: true}, func(w *world) {
				job := w.jobs(1, tt.size)[0]
				ctx, cancel := context.WithTimeout(w.t.Context(), 10*time.Minute)
				defer cancel()
				n, failed := 0, 0
				up := upload.Tuned(w.uploader(withoutStore, unobserved), tt.small, tt.memory)
				for _, err := range up.Files(ctx, func(yield func(upload.Job) bool) {
					for i := range tt.files {
						job.Spec.Object = fmt.Sprint(i)
						job.Listed = tt.listed(i)
						if !yield(job) {
							return
						}
					}
				}, &upload.BatchOptions{Skip: upload.SkipIdentical}) {
					if err != nil {
						failed++
						continue
					}
					n++
				}
				if failed > 0 || n != tt.files {
					w.t.Errorf("%d uploaded, %d failed, want %d", n, failed, tt.files)
				}
			})
		})
	}
}
