package fleet_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"gcsup/fleet"
)

// measure runs workers until the queue is empty, and returns the time from the first
// object to the last.
func (w *world) measure(workers int, change func(*fleet.WorkerOptions)) time.Duration {
	began := time.Now()
	var running sync.WaitGroup
	for i := range workers {
		worker := w.worker(w.queue(), fmt.Sprintf("w%d", i), change)
		running.Go(func() { w.run(w.t.Context(), worker) })
	}
	running.Wait()
	var first, last time.Time
	for _, r := range w.gcs.Requests() {
		if r.Bucket != bucket || r.Received == 0 || r.Time.Before(began) {
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

// fill writes files of 1.4 MiB, which have a task each.
func (w *world) fill(dir string, n int) {
	for i := range n {
		w.write(fmt.Sprintf("%s/%02d", dir, i), 11<<17, uint64(i))
	}
}

// TestWorkersAddUp checks that four workers with a rate limit each are almost four times
// as fast as one. The limit is low, so that the processors are not.
func TestWorkersAddUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	limited := func(o *fleet.WorkerOptions) { o.Rate, o.Jobs = 2<<20, 2 }
	q := w.queue()
	best := 0.0
	for try := 0; try < 3 && best < 3.6; try++ { // other tests may need the processors
		w.fill(fmt.Sprintf("one-%d", try), 6)
		w.submit(q)
		one := w.measure(1, limited)
		w.fill(fmt.Sprintf("four-%d", try), 24)
		w.submit(q)
		four := w.measure(4, limited)
		gain := 4 * one.Seconds() / four.Seconds()
		t.Logf("one worker: %v for 8.25 MiB; four: %v for 33 MiB: %.2f times as fast", one, four, gain)
		best = max(best, gain)
	}
	if best < 3.6 {
		t.Errorf("four workers are %.2f times as fast as one, want at least 3.6", best)
	}
	w.check()
}

// TestFleetRate checks that a limit of the fleet holds for all workers together.
func TestFleetRate(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	q := w.queue()
	const limit = 4 << 20
	if err := q.SetRate(t.Context(), limit); err != nil {
		t.Fatal(err)
	}
	if err := q.SetDrain(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	w.fill("a", 12)
	w.submit(q)
	// The workers hear of each other before they begin.
	go func() {
		for ready := 0; ready < 4 && t.Context().Err() == nil; pause(t.Context(), 100*time.Millisecond) {
			s, err := q.Status(t.Context())
			if err != nil {
				return
			}
			ready = 0
			for _, worker := range s.Workers {
				if worker.RateLimit == limit/4 {
					ready++
				}
			}
		}
		_ = q.SetDrain(t.Context(), false)
	}()
	took := w.measure(4, nil)
	t.Logf("16.5 MiB took %v with a limit of 4 MiB/s", took)
	if took < 3*time.Second {
		t.Errorf("16.5 MiB took %v with a limit of 4 MiB/s for the fleet", took)
	}
	w.check()
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
