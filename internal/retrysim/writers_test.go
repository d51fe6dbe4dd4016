package retrysim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"sync"
	"testing"
	"time"

	"gcsup/internal/require"
	"gcsup/internal/testsize"
)

// Writers returns the simulations of docs/explain/backoff.md, in which machines upload small files to a
// bucket. Without a pacer a client is a place for a file in flight.
func Writers() []Scenario {
	all := []Scenario{
		{Name: "one machine, 32 files at a time", Clients: 32},
		{Name: "one machine, 512 files at a time", Clients: 512},
		{Name: "one machine, auto", Clients: 1, pacer: newMachine},
		{Name: "one machine, auto, names like timestamps", Clients: 1, pacer: newMachine, service: newSequentialBucket},
		{Name: "100 machines, 32 files at a time", Clients: 100 * 32},
		{Name: "100 machines, auto", Clients: 100, pacer: newMachine},
	}
	for i := range all {
		s := &all[i]
		if s.service == nil {
			s.service = newBucket
		}
		s.Capacity, s.parts, s.spread = rangeCapacity, math.MaxInt, time.Second
		s.reply, s.length = 150*time.Millisecond, 30*time.Minute
	}
	return all
}

// WritersResults runs these simulations once for all tests. The policies of the results are the
// names of the scenarios.
var WritersResults = sync.OnceValues(func() ([]Result, error) {
	var results []Result
	var errs []error
	for _, s := range Writers() {
		r, err := Run(context.Background(), s, []string{"cloudstorage"}, 1)
		if err == nil {
			r[0].Policy = s.Name
		}
		results, errs = append(results, r...), append(errs, err)
	}
	return results, errors.Join(errs...)
})

// simulated returns the results by name.
func simulated(t *testing.T) map[string]Result {
	t.Helper()
	if testing.Short() || testsize.Full(1, 0) == 0 {
		t.Skip("simulates many requests in one goroutine")
	}
	results, err := WritersResults()
	require.NoError(t, err)
	byName := map[string]Result{}
	for _, r := range results {
		byName[r.Policy] = r
	}
	return byName
}

// between returns the accepted requests from a minute to another, and the capacity.
func between(r Result, from, to int) (served, capacity int64) {
	for second := from * 60; second < to*60; second++ {
		served += r.Load[second].Served
		capacity += r.Load[second].Capacity
	}
	return served, capacity
}

// refusedLater returns the share of the requests after the first minute that were refused.
func refusedLater(r Result) float64 {
	var requests, served int64
	for _, s := range r.Load[min(60, len(r.Load)):] {
		requests += s.Requests
		served += s.Served
	}
	return float64(requests-served) / float64(max(requests, 1))
}

// WriteWritersSVG writes the chart of the bucket. Many machines begin with a much higher load
// than its y axis shows.
func WriteWritersSVG(w io.Writer, results []Result) error {
	return writeChart(w, Writers()[0], results, caption{
		title:  fmt.Sprintf("Small files into a bucket that starts with %d writes/s", rangeCapacity),
		legend: "dashed: capacity",
		top:    3500,
		result: func(r Result) string {
			return fmt.Sprintf("%d files, %.1f %% refused after the first minute", r.Requests-r.Wasted, 100*refusedLater(r))
		},
	})
}

// TestWriters checks that auto uses the capacity of a bucket, grows with it, and gets hardly any
// 429, with one machine and with many.
func TestWriters(t *testing.T) {
	r := simulated(t)
	for _, name := range []string{"one machine, auto", "100 machines, auto"} {
		auto := r[name]
		if share := refusedLater(auto); share > 0.01 {
			t.Errorf("%s: %.2f %% of the requests are refused after a minute, want at most 1 %%", name, 100*share)
		}
		if served, capacity := between(auto, 1, 20); float64(served) < 0.9*float64(capacity) {
			t.Errorf("%s: %d requests before the bucket is divided, want 0.9 of %d", name, served, capacity)
		}
		if served, _ := between(auto, 29, 30); served < 60*1300 || served > 60*1500 {
			t.Errorf("%s: %d requests in the last minute, want 1,400 per second, ten minutes after the bucket was divided", name, served)
		}
	}
	for name, fixed := range map[string]string{"one machine, auto": "one machine, 512 files at a time", "100 machines, auto": "100 machines, 32 files at a time"} {
		if many := refusedLater(r[fixed]); many < 0.02 {
			t.Errorf("%s: %.2f %% of the requests are refused, want many", fixed, 100*many)
		}
		if r[name].Wasted*20 > r[fixed].Wasted {
			t.Errorf("%s: %d requests are refused, want a twentieth of the %d of %s", name, r[name].Wasted, r[fixed].Wasted, fixed)
		}
	}
	if slow := r["one machine, 32 files at a time"]; slow.Wasted > 0 || slow.Requests*3 > r["one machine, auto"].Requests {
		t.Errorf("%s: %d files, %d refused, want a third of auto and none", slow.Policy, slow.Requests, slow.Wasted)
	}
}

// TestWritersSequential checks that a bucket cannot spread names that grow.
func TestWritersSequential(t *testing.T) {
	r := simulated(t)["one machine, auto, names like timestamps"]
	if last := r.Load[len(r.Load)-1].Capacity; last < 2000 {
		t.Errorf("capacity %d at the end: the range was not divided", last)
	}
	for second, load := range r.Load {
		if load.Served > 1100 {
			t.Fatalf("%d accepted in second %d: all names are in one range", load.Served, second)
		}
	}
	if served, _ := between(r, 25, 30); served < 300*850 {
		t.Errorf("%d accepted in the last five minutes, want most of 1,000 per second", served)
	}
	if share := refusedLater(r); share > 0.01 {
		t.Errorf("%.2f %% of the requests are refused after a minute, want at most 1 %%", 100*share)
	}
}

// TestWritersCounts checks that requests are answered after the time of a reply.
func TestWritersCounts(t *testing.T) {
	for _, s := range Writers() {
		s.length = 20 * time.Second
		r, err := newRun(s, "cloudstorage", nothing, 1)
		require.NoError(t, err)
		got, err := r.play(t.Context())
		require.NoError(t, err)
		// The replies to the last requests are missing.
		if missing := got.Requests - got.Wasted - int64(len(r.done)); s.pacer != nil && (missing < 0 || missing > 1100*150/1000) {
			t.Errorf("%s: %d files, %d accepted", s.Name, len(r.done), got.Requests-got.Wasted)
		}
		if want := int64(18 * s.Clients * 1000 / 150); s.Clients == 32 && (got.Wasted > 0 || got.Requests < want || got.Requests > want*20/18) {
			t.Errorf("%s: %d requests, %d wasted, want %d in 18 s", s.Name, got.Requests, got.Wasted, want)
		}
	}
}
