package retrysim_test

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"gcsup/internal/retrysim"
	"gcsup/internal/testsize"
)

// writers returns the simulations of docs/backoff.md.
func writers() []retrysim.Writers {
	all := []retrysim.Writers{
		{Name: "one machine, 32 files at a time", Machines: 1, Jobs: 32},
		{Name: "one machine, 512 files at a time", Machines: 1, Jobs: 512},
		{Name: "one machine, auto", Machines: 1},
		{Name: "one machine, auto, names like timestamps", Machines: 1, Sequential: true},
		{Name: "100 machines, 32 files at a time", Machines: 100, Jobs: 32},
		{Name: "100 machines, auto", Machines: 100},
	}
	for i := range all {
		all[i].Latency, all[i].Length = 150*time.Millisecond, 30*time.Minute
	}
	return all
}

// writersResults runs the simulations once for all tests.
var writersResults = sync.OnceValues(func() ([]retrysim.WritersResult, error) {
	var results []retrysim.WritersResult
	var errs []error
	for _, w := range writers() {
		r, err := retrysim.RunWriters(context.Background(), w, 1)
		results, errs = append(results, r), append(errs, err)
	}
	return results, errors.Join(errs...)
})

// simulated returns the results by name.
func simulated(t *testing.T) map[string]retrysim.WritersResult {
	t.Helper()
	if testing.Short() || testsize.Full(1, 0) == 0 {
		t.Skip("simulates many requests in one goroutine")
	}
	results, err := writersResults()
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]retrysim.WritersResult{}
	for _, r := range results {
		byName[r.Name] = r
	}
	return byName
}

// between returns the accepted requests from a minute to another, and the capacity.
func between(r retrysim.WritersResult, from, to int) (served, capacity int64) {
	for second := from * 60; second < to*60; second++ {
		served += r.Load[second].Served
		capacity += r.Capacity[second]
	}
	return served, capacity
}

// TestWriters checks that auto uses the capacity of a bucket, grows with it, and gets hardly any
// 429, with one machine and with many.
func TestWriters(t *testing.T) {
	r := simulated(t)
	for _, name := range []string{"one machine, auto", "100 machines, auto"} {
		auto := r[name]
		if share := auto.RefusedAfter(time.Minute); share > 0.01 {
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
		if many := r[fixed].RefusedAfter(time.Minute); many < 0.02 {
			t.Errorf("%s: %.2f %% of the requests are refused, want many", fixed, 100*many)
		}
		if r[name].Refused*20 > r[fixed].Refused {
			t.Errorf("%s: %d requests are refused, want a twentieth of the %d of %s", name, r[name].Refused, r[fixed].Refused, fixed)
		}
	}
	if slow := r["one machine, 32 files at a time"]; slow.Refused > 0 || slow.Files*3 > r["one machine, auto"].Files {
		t.Errorf("%s: %d files, %d refused, want a third of auto and none", slow.Name, slow.Files, slow.Refused)
	}
}

// TestWritersSequential checks that a bucket cannot spread names that grow.
func TestWritersSequential(t *testing.T) {
	r := simulated(t)["one machine, auto, names like timestamps"]
	if last := r.Capacity[len(r.Capacity)-1]; last < 2000 {
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
	if share := r.RefusedAfter(time.Minute); share > 0.01 {
		t.Errorf("%.2f %% of the requests are refused after a minute, want at most 1 %%", 100*share)
	}
}

func TestWritersCounts(t *testing.T) {
	for name, r := range simulated(t) {
		var requests, served int64
		for _, load := range r.Load {
			requests += load.Requests
			served += load.Served
		}
		// The replies to the last requests are missing.
		if missing := served - r.Files; missing < 0 || missing > 3*1000*150/1000 {
			t.Errorf("%s: %d files, %d accepted", name, r.Files, served)
		}
		if missing := requests - served - r.Refused; missing < 0 || missing > 5000 {
			t.Errorf("%s: %d refused, %d answered with 429", name, requests-served, r.Refused)
		}
	}
}

// TestWritersCanceled checks that the context ends a simulation.
func TestWritersCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := retrysim.RunWriters(ctx, writers()[0], 1); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want canceled", err)
	}
}

// TestWritersCharts compares the chart of docs/backoff.md with the simulation. To update it, run
// go test ./internal/retrysim -run Charts -update.
func TestWritersCharts(t *testing.T) {
	simulated(t)
	results, _ := writersResults() // of simulated
	var b bytes.Buffer
	if err := retrysim.WriteWritersSVG(&b, 3500, results); err != nil {
		t.Fatal(err)
	}
	for d := xml.NewDecoder(strings.NewReader(b.String())); ; {
		if _, err := d.Token(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatalf("not XML: %v", err)
		}
	}
	checkChart(t, "backoff-bucket.svg", b.Bytes())
}
