package fleet_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"gcsup/fakegcs"
	"gcsup/fleet"
)

// TestScaling uploads a tree with one worker, and with four, each of which has the same
// rate limit. Four must be almost four times as fast.
func TestScaling(t *testing.T) {
	t.Parallel()
	one := measure(t, 1)
	four := measure(t, 4)
	ratio := float64(one) / float64(four)
	t.Logf("one worker took %v, four took %v: %.2f times as fast", one.Round(time.Millisecond), four.Round(time.Millisecond), ratio)
	if ratio < 3.6 {
		t.Errorf("four workers are %.2f times as fast as one, want at least 3.6", ratio)
	}
}

// measure returns the time from the first to the last request of an upload.
func measure(t *testing.T, workers int) time.Duration {
	w := newWorld(t, &fakegcs.Options{NoMD5: true})
	for i := range 64 {
		w.write(fmt.Sprintf("%03d", i), 1<<20+1000, uint64(i))
	}
	q := w.queue()
	w.submit(q)
	var all sync.WaitGroup
	for i := range workers {
		worker := w.worker(q, fmt.Sprintf("w%d", i), func(o *fleet.WorkerOptions) { o.Rate = 8 << 20 })
		all.Go(func() { w.run(t.Context(), worker) })
	}
	all.Wait()
	w.check()
	var first, last time.Time
	for _, r := range w.gcs.Requests() {
		if r.Bucket != bucket || r.Received == 0 {
			continue
		}
		if first.IsZero() || r.Time.Before(first) {
			first = r.Time
		}
		if end := r.Time.Add(r.Elapsed); end.After(last) {
			last = end
		}
	}
	return last.Sub(first)
}
