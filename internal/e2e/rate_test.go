//go:build unix

package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
)

// TestShardsShareTheRate checks that three processes, each with a shard of many small files, soon get hardly any
// 429 from a bucket that accepts fewer requests than they can make. The clock is the real one.
func TestShardsShareTheRate(t *testing.T) {
	t.Parallel()
	const rate, files = 300, 2100 // at least 7 s
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "tree"), 0o700); err != nil {
		t.Fatal(err)
	}
	for i := range files {
		if err := os.WriteFile(filepath.Join(dir, "tree", fmt.Sprint(i)), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	e := startEmulator(t, "--bucket-rate", fmt.Sprint(rate))
	var shards []*child
	for i := range 3 {
		shards = append(shards, run(t, environment(), "cp", "-r", "--quiet", "--jobs=100", "--shard", fmt.Sprintf("%d/3", i),
			"--state-dir", filepath.Join(dir, "state"), "--endpoint", e.url(), filepath.Join(dir, "tree"), "gs://demo/"))
	}
	for _, c := range shards {
		if c.Wait() != 0 {
			t.Fatal(c.output())
		}
	}
	var inserts []fakegcs.Request
	uploaded := 0
	for _, r := range e.requests() {
		if r.Op == faults.OpInsert {
			inserts = append(inserts, r)
		}
		if r.Op == faults.OpInsert && r.Status == 200 {
			uploaded++
		}
	}
	if uploaded != files {
		t.Errorf("%d objects, want %d", uploaded, files)
	}
	begin, end := inserts[0].Time.Add(4*time.Second), inserts[len(inserts)-1].Time.Add(-time.Second) // one shard may end earlier
	var early, late, refusedEarly, refusedLate int
	for _, r := range inserts {
		refused := 0
		if r.Status == 429 {
			refused = 1
		}
		switch {
		case r.Time.Before(begin):
			early++
			refusedEarly += refused
		case r.Time.Before(end):
			late++
			refusedLate += refused
		}
	}
	perSecond := float64(late-refusedLate) / end.Sub(begin).Seconds()
	t.Logf("the first 4 s: %d requests, %d refused; then for %v: %d requests, %d refused, %.0f accepted per second",
		early, refusedEarly, end.Sub(begin).Round(time.Second/10), late, refusedLate, perSecond)
	if refusedEarly == 0 {
		t.Error("no request is refused at first")
	}
	if share := float64(refusedLate) / float64(late); share > 0.05 { // the clocks of three processes on a busy machine
		t.Errorf("%.1f %% of the requests are refused after 4 s, want hardly any", 100*share)
	}
	if perSecond < 0.1*rate { // the rate still grows, and the machine is busy
		t.Errorf("%.0f requests accepted per second, want more of %d", perSecond, rate)
	}
}
