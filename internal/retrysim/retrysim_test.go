package retrysim_test

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"gcsup/backoff"
	"gcsup/internal/require"
	"gcsup/internal/retrysim"
	"gcsup/internal/testsize"
)

var update = flag.Bool("update", false, "rewrite the charts of docs/explain/backoff.md")

func scenario(t testing.TB, name string) retrysim.Scenario {
	t.Helper()
	s, err := retrysim.Lookup(name)
	require.NoError(t, err)
	return s
}

func run(t testing.TB, s retrysim.Scenario, policies ...string) map[string]retrysim.Result {
	t.Helper()
	results, err := retrysim.Run(t.Context(), s, policies, 1)
	require.NoError(t, err)
	byName := map[string]retrysim.Result{}
	for _, r := range results {
		byName[r.Policy] = r
	}
	return byName
}

// TestOracle compares the simulation of policies without jitter with a much simpler
// program. It steps through time in milliseconds, and checks all clients when one is
// due.
func TestOracle(t *testing.T) {
	for _, name := range []string{"none", "exponential"} {
		for _, s := range []retrysim.Scenario{
			{Clients: 1, Capacity: 1},
			{Clients: 37, Capacity: 20, Outage: 2500 * time.Millisecond},
			{Clients: 100, Capacity: 100, Outage: 20 * time.Second},
			{Clients: 100, Capacity: 7},
		} {
			real := scenario(t, "herd")
			real.Clients, real.Capacity, real.Outage = s.Clients, s.Capacity, s.Outage
			got := run(t, real, name)[name]

			policy, err := backoff.Named(name)
			require.NoError(t, err)
			due := make([]time.Duration, s.Clients)
			failed := make([]int, s.Clients)
			credit := 0.0 // requests
			queue := max(float64(s.Capacity)/10, 1)
			var requests int64
			var all, longest, next time.Duration
			left := s.Clients
			for now := time.Duration(0); left > 0; now += time.Millisecond {
				credit = min(credit+float64(s.Capacity)/1000, queue)
				if now <= s.Outage {
					credit = queue
				}
				if now < next {
					continue // no client is due
				}
				next = math.MaxInt64
				for i := range due {
					if due[i] > now {
						next = min(next, due[i])
					}
					if due[i] != now {
						continue
					}
					requests++
					if now >= s.Outage && credit > 1-1e-9 {
						credit--
						left--
						all = now
						due[i] = -1
						continue
					}
					wait := policy.Delay(failed[i], 0)
					longest = max(longest, wait)
					due[i] = now + wait
					next = min(next, due[i])
					failed[i]++
				}
			}
			if got.Requests != requests || got.Wasted != requests-int64(s.Clients) || got.All != retrysim.Time(all) || got.MaxWait != retrysim.Time(longest) || got.Failed != 0 {
				t.Errorf("%s, %+v: %d requests, %d wasted, all after %v, longest wait %v, %d failed\nwant %d, %d, %v, %v, 0",
					name, s, got.Requests, got.Wasted, got.All, got.MaxWait, got.Failed, requests, requests-int64(s.Clients), all, longest)
			}
		}
	}
}

// TestResults checks the invariants of every policy and scenario.
func TestResults(t *testing.T) {
	for _, s := range retrysim.Scenarios() {
		s.Clients /= 20 // faster, with the same relations
		s.Capacity = max(s.Capacity/20, 1)
		results, err := retrysim.Run(t.Context(), s, backoff.Names(), 1)
		require.NoError(t, err)
		parts, start := int64(1), 0 // start of the outage
		if s.Name == "uploads" {
			parts, start = 30, 15
		}
		for _, r := range results {
			var requests, served int64
			for second, load := range r.Load {
				requests += load.Requests
				served += load.Served
				if queue := max(int64(s.Capacity)/10, 1); load.Served > int64(s.Capacity)+queue {
					t.Errorf("%s, %s: %d served in second %d, more than the capacity of %d and the queue", s.Name, r.Policy, load.Served, second, s.Capacity)
				}
				if second >= start && time.Duration(second-start+1)*time.Second <= s.Outage && load.Served > 0 {
					t.Errorf("%s, %s: %d served in second %d of the outage", s.Name, r.Policy, load.Served, second)
				}
			}
			if requests != r.Requests || requests-served != r.Wasted {
				t.Errorf("%s, %s: %d requests, %d wasted, the load has %d, %d", s.Name, r.Policy, r.Requests, r.Wasted, requests, requests-served)
			}
			if r.Failed == 0 && served != int64(s.Clients)*parts {
				t.Errorf("%s, %s: %d requests served, want %d", s.Name, r.Policy, served, int64(s.Clients)*parts)
			}
			if (r.Failed == 0) != (r.All >= 0) || r.All >= 0 && (r.P50 > r.P99 || r.P99 > r.All || r.P50 < 0) {
				t.Errorf("%s, %s: %d failed, 50 %% %v, 99 %% %v, all %v", s.Name, r.Policy, r.Failed, r.P50, r.P99, r.All)
			}
			if r.MaxWait <= 0 || r.MaxWait >= retrysim.Time(backoff.Limit) {
				t.Errorf("%s, %s: longest wait %v", s.Name, r.Policy, r.MaxWait)
			}
		}
	}
}

// TestUploads checks that progress restores the retries, so that uploads survive
// an outage at any time if it is shorter than the waits of their retries.
func TestUploads(t *testing.T) {
	s := scenario(t, "uploads")
	s.Outage = 10 * time.Second
	if got := run(t, s, "bidmanager")["bidmanager"]; got.Failed != 0 || got.All < retrysim.Time(40*time.Second) {
		t.Errorf("outage of 10 s: %d of %d failed, all after %v", got.Failed, s.Clients, got.All)
	}
	// The server always has too little capacity. Every upload is refused more
	// than five times in total. If progress did not restore the retries, 93
	// uploads, nearly half, would stop.
	busy := s
	busy.Outage, busy.Capacity = 0, 60
	if got := run(t, busy, "bidmanager")["bidmanager"]; got.Failed > 75 || got.Wasted < int64(6*s.Clients) {
		t.Errorf("busy server: %d of %d failed after %d refusals, want at most 75 after many", got.Failed, s.Clients, got.Wasted)
	}
	s.Outage = time.Minute
	if got := run(t, s, "bidmanager")["bidmanager"]; got.Failed != s.Clients {
		t.Errorf("outage of a minute: %d of %d failed, want all, because five retries last half as long", got.Failed, s.Clients)
	}
}

// TestCollapse checks that a run ends even if refusals cost more than the
// capacity and keep the server down.
func TestCollapse(t *testing.T) {
	s := scenario(t, "overload")
	s.Clients, s.Capacity = s.Clients/50, s.Capacity/50
	r := run(t, s, "none", "cloudstorage")
	if got := r["none"]; got.Failed == 0 || got.P50 != -1 {
		t.Errorf("none: %d failed, half served after %v, want a server that stays down", got.Failed, got.P50)
	}
	if got := r["cloudstorage"]; got.Failed != 0 {
		t.Errorf("cloudstorage: %d failed, want 0", got.Failed)
	}
}

// TestSeeds checks that a run depends on the seed. TestCharts checks that equal runs have equal results.
func TestSeeds(t *testing.T) {
	s := scenario(t, "herd")
	s.Clients = 500
	first, err := retrysim.Run(t.Context(), s, []string{"full"}, 1)
	second, err2 := retrysim.Run(t.Context(), s, []string{"full"}, 2)
	if err := errors.Join(err, err2); err != nil || reflect.DeepEqual(first, second) {
		t.Errorf("two runs with different seeds are equal, %v", err)
	}
}

func TestRunRefuses(t *testing.T) {
	s := scenario(t, "herd")
	change := func(f func(*retrysim.Scenario)) retrysim.Scenario {
		changed := s
		f(&changed)
		return changed
	}
	tests := []struct {
		scenario retrysim.Scenario
		policies []string
		want     string
	}{
		{s, nil, "no policy"},
		{s, []string{"full", "fibonacci"}, `no policy "fibonacci": choose one of none, exponential`},
		{change(func(s *retrysim.Scenario) { s.Clients = 0 }), []string{"full"}, "0 clients: want 1 to 1000000"},
		{change(func(s *retrysim.Scenario) { s.Clients = retrysim.MaxClients + 1 }), []string{"full"}, "1000001 clients: want 1 to 1000000"},
		{change(func(s *retrysim.Scenario) { s.Capacity = 0 }), []string{"full"}, "capacity of 0"},
		{change(func(s *retrysim.Scenario) { s.Capacity = retrysim.MaxCapacity + 1 }), []string{"full"}, "want 1 to 10000000"},
		{change(func(s *retrysim.Scenario) { s.Outage = -1 }), []string{"full"}, "outage of -1ns"},
		{change(func(s *retrysim.Scenario) { s.Outage = retrysim.MaxOutage + 1 }), []string{"full"}, "want 0 to 12h"},
	}
	for _, test := range tests {
		if _, err := retrysim.Run(t.Context(), test.scenario, test.policies, 1); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("Run = %v, want an error with %q", err, test.want)
		}
	}
	if _, err := retrysim.Lookup("stampede"); err == nil || !strings.Contains(err.Error(), "herd, single, overload, uploads, processes") {
		t.Errorf("Lookup(stampede) = %v, want an error with the names", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := retrysim.Run(ctx, s, []string{"full"}, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("Run with a canceled context = %v", err)
	}
}

func TestWriteJSONAndTable(t *testing.T) {
	results := []retrysim.Result{
		{Policy: "full", Requests: 12, Wasted: 2, Peak: 7, P50: retrysim.Time(1500 * time.Millisecond), P99: retrysim.Time(2 * time.Second), All: 2123456789, MaxWait: 31999999999},
		{Policy: "bidmanager", Requests: 6, Wasted: 6, P50: -1, P99: -1, All: -1, Failed: 100},
	}
	var lines, table bytes.Buffer
	require.NoError(t, retrysim.WriteJSON(&lines, results))
	require.NoError(t, retrysim.WriteTable(&table, scenario(t, "single"), results))
	want := `{"policy":"full","requests":12,"wasted":2,"peak_per_s":7,"p50_s":1.5,"p99_s":2,"all_s":2.123,"max_wait_s":32,"failed":0}
{"policy":"bidmanager","requests":6,"wasted":6,"peak_per_s":0,"p50_s":null,"p99_s":null,"all_s":null,"max_wait_s":0,"failed":100}
`
	if lines.String() != want {
		t.Errorf("WriteJSON wrote\n%swant\n%s", lines.String(), want)
	}
	want = `
      policy  requests  wasted  peak/s   50 %   99 %    all  failed  longest wait
        full        12       2       7  1.5 s  2.0 s  2.1 s       0        32.0 s
  bidmanager         6       6       0  never  never  never     100         0.0 s
`
	if !strings.Contains(table.String(), want) {
		t.Errorf("WriteTable wrote\n%swant\n%s", table.String(), want)
	}
}

func TestWriteSVG(t *testing.T) {
	if testing.Short() {
		t.Skip("simulates many clients")
	}
	for i, s := range retrysim.Scenarios() {
		for j, change := range []func(*retrysim.Scenario){
			func(s *retrysim.Scenario) { s.Clients, s.Capacity = s.Clients/50, max(s.Capacity/50, 1) },
			func(s *retrysim.Scenario) { s.Clients, s.Capacity, s.Outage = 1, 1, 0 },
			func(s *retrysim.Scenario) { s.Clients, s.Capacity = 10, retrysim.MaxCapacity },
			func(s *retrysim.Scenario) { s.Clients, s.Outage = 10, 3*time.Hour },
		} {
			change(&s)
			if (i+j)%testsize.Full(1, 4) != 0 {
				continue
			}
			results, err := retrysim.Run(t.Context(), s, []string{"none", "bidmanager"}, 1)
			require.NoError(t, err)
			var b bytes.Buffer
			require.NoError(t, retrysim.WriteSVG(&b, s, results))
			panels := strings.Count(b.String(), `font-weight="bold">`) - 1
			if panels != len(results) {
				t.Errorf("%s: %d panels for %d results", s.Name, panels, len(results))
			}
			if strings.Contains(b.String(), "NaN") || strings.Contains(b.String(), "Inf") || b.Len() > 1<<20 {
				t.Errorf("%s: malformed or too large SVG of %d bytes", s.Name, b.Len())
			}
			checkXML(t, b.String())
		}
	}
}

// TestCharts compares the charts of docs/explain/backoff.md with the simulation. To
// update them, run go test ./internal/retrysim -run Charts -update.
func TestCharts(t *testing.T) {
	for _, chart := range []struct {
		file, scenario string
		policies       []string
	}{
		{"backoff-herd.svg", "herd", []string{"none", "exponential", "cloudstorage", "full", "decorrelated"}},
		{"backoff-breaker.svg", "processes", []string{"cloudstorage"}},
	} {
		s := scenario(t, chart.scenario)
		results, err := retrysim.Run(t.Context(), s, chart.policies, 1)
		require.NoError(t, err)
		var b bytes.Buffer
		require.NoError(t, retrysim.WriteSVG(&b, s, results))
		checkChart(t, chart.file, b.Bytes())
	}
}

// TestWritersCharts does the same for the chart of the bucket.
func TestWritersCharts(t *testing.T) {
	if testing.Short() || testsize.Full(1, 0) == 0 {
		t.Skip("simulates many requests in one goroutine")
	}
	results, err := retrysim.WritersResults()
	require.NoError(t, err)
	var b bytes.Buffer
	require.NoError(t, retrysim.WriteWritersSVG(&b, results))
	checkXML(t, b.String())
	checkChart(t, "backoff-bucket.svg", b.Bytes())
}

// checkXML checks that a chart is XML.
func checkXML(t *testing.T, chart string) {
	t.Helper()
	for d := xml.NewDecoder(strings.NewReader(chart)); ; {
		if _, err := d.Token(); err == io.EOF {
			return
		} else if err != nil {
			t.Fatalf("not XML: %v", err)
		}
	}
}

// checkChart compares a file in docs/explain with a chart, or updates it.
func checkChart(t *testing.T, file string, chart []byte) {
	t.Helper()
	path := filepath.Join("..", "..", "docs", "explain", file)
	if *update {
		require.NoError(t, os.WriteFile(path, chart, 0o644))
	}
	kept, err := os.ReadFile(path)
	require.NoError(t, err)
	if !bytes.Equal(kept, chart) {
		t.Errorf("%s is out of date: run go test ./internal/retrysim -run Charts -update", path)
	}
}

// BenchmarkMillion measures a simulation of a million clients.
func BenchmarkMillion(b *testing.B) {
	for _, policy := range []string{"exponential", "cloudstorage", "full", "decorrelated"} {
		b.Run(policy, func(b *testing.B) {
			s := scenario(b, "herd")
			s.Clients, s.Capacity = retrysim.MaxClients, 10_000
			b.ReportAllocs()
			var requests int64
			for b.Loop() {
				requests += run(b, s, policy)[policy].Requests
			}
			b.ReportMetric(float64(b.Elapsed())/float64(requests), "ns/request")
		})
	}
}
