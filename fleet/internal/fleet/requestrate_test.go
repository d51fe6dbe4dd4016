package fleet_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"gcsup/backoff"
	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/fleet/internal/fleet"
	"gcsup/internal/require"
	"gcsup/upload"
)

// flood uploads a number of small files, several times, by three workers with those rates, and calls
// during when all workers have begun. It returns the inserts.
func (w *world) flood(files, times int, rates *[3]upload.RequestRates, during func(q *fleet.Queue, done <-chan struct{})) (inserts []fakegcs.Request) {
	w.t.Helper()
	q := w.queue()
	require.NoError(w.t, q.SetDrain(w.t.Context(), true))
	w.fill("%d", files, 1)
	for i := range times { // each is a task
		must(fleet.Submit(w.t.Context(), q, w.submission(fmt.Sprintf("tree%d/", i))))
	}
	var mu sync.Mutex
	w.onRequest.Store(new(func(r fakegcs.Request) {
		if r.Bucket == bucket && r.Op == faults.OpInsert {
			mu.Lock()
			defer mu.Unlock()
			inserts = append(inserts, r)
		}
	}))
	var running sync.WaitGroup
	for i := range rates {
		worker := w.worker(w.queue(), fmt.Sprintf("w%d", i), func(o *fleet.WorkerOptions) {
			o.Jobs, o.Upload.Policy, o.Upload.RequestRates = times/len(rates), backoff.Policy{}, &rates[i]
		})
		running.Go(func() { w.run(w.t.Context(), worker) })
	}
	for known := 0; known < len(rates); pause(w.t.Context(), 50*time.Millisecond) {
		s := must(q.Status(w.t.Context()))
		known = len(s.Workers)
	}
	pause(w.t.Context(), 2500*time.Millisecond) // until each has read the conditions of the others
	require.NoError(w.t, q.SetDrain(w.t.Context(), false))
	done := make(chan struct{})
	go func() {
		running.Wait()
		close(done)
	}()
	during(q, done)
	<-done
	return inserts
}

// TestFleetRequestRate checks that three workers soon get hardly any 429 from a bucket that accepts fewer
// requests than they can make, and that their status has the rate. The clock is the real one.
func TestFleetRequestRate(t *testing.T) {
	t.Parallel()
	const rate = 100
	w := newWorld(t, &fakegcs.Options{BucketRate: rate})
	inserts := w.flood(150, 6, new([3]upload.RequestRates), func(q *fleet.Queue, done <-chan struct{}) {
		for paced := 0; paced == 0; pause(t.Context(), 100*time.Millisecond) {
			s := must(q.Status(t.Context()))
			paced = 0
			for _, worker := range s.Workers {
				if worker.RequestRates[bucket] > 0 {
					paced++
				}
			}
			select {
			case <-done:
				t.Error("the status does not show that a worker is throttled")
				return
			default:
			}
		}
	})
	const settled = 4 * time.Second
	var requests, refused [2]int
	var first time.Time // 429
	for _, r := range inserts {
		if first.IsZero() && r.Status == 429 {
			first = r.Time
		}
		phase := 0
		if !first.IsZero() && r.Time.Sub(first) >= settled {
			phase = 1
		}
		requests[phase]++
		if r.Status == 429 {
			refused[phase]++
		}
	}
	t.Logf("%d of %d requests are refused until %v after the first 429, then %d of %d", refused[0], requests[0], settled, refused[1], requests[1])
	if refused[0] == 0 {
		t.Error("no request is refused at first")
	}
	if share := float64(refused[1]) / float64(max(requests[1], 1)); share > 0.02 || requests[1] < 50 {
		t.Errorf("%.1f %% of %d requests are refused %v after the first 429, want hardly any", 100*share, requests[1], settled)
	}
}

// TestFleetRequestLimit checks that a limit of requests is that of all workers together.
func TestFleetRequestLimit(t *testing.T) {
	t.Parallel()
	const limit = 30
	w := newWorld(t, nil)
	var rates [3]upload.RequestRates
	for i := range rates {
		rates[i].Limit(limit)
	}
	inserts := w.flood(20, 6, &rates, func(*fleet.Queue, <-chan struct{}) {})
	took := inserts[len(inserts)-1].Time.Sub(inserts[0].Time)
	t.Logf("%d requests in %v", len(inserts), took)
	if least := time.Duration(len(inserts)) * time.Second / limit * 8 / 10; took < least {
		t.Errorf("%d requests in %v, want at least %v: %d per second", len(inserts), took, least, limit)
	}
}
