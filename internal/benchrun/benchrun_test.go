package benchrun

import (
	"math"
	"slices"
	"strings"
	"testing"

	"gcsup/internal/require"
)

func TestSpread(t *testing.T) {
	for _, test := range []struct {
		values []float64
		want   spread
		text   string
	}{
		{[]float64{2}, spread{2, 2, 2}, "2 (2-2)"},
		{[]float64{0.7, 0.5, 0.9}, spread{0.7, 0.5, 0.9}, "0.700 (0.500-0.900)"},
		{[]float64{4, 1, 2, 1234.5}, spread{3, 1, 1234.5}, "3 (1-1234)"},
		{[]float64{12.34, 1.234}, spread{6.787, 1.234, 12.34}, "6.79 (1.23-12.3)"},
	} {
		before := slices.Clone(test.values)
		got := spreadOf(test.values)
		if math.Abs(got.median-test.want.median) > 1e-9 || got.least != test.want.least || got.greatest != test.want.greatest {
			t.Errorf("spreadOf(%v) = %+v, want %+v", test.values, got, test.want)
		}
		if got.String() != test.text {
			t.Errorf("spreadOf(%v) is %q, want %q", test.values, got, test.text)
		}
		if !slices.Equal(test.values, before) {
			t.Errorf("spreadOf changed %v to %v", before, test.values)
		}
	}
}

// The ratio is that of runs at the same time. The machine was twice as slow in the second
// run, which does not affect it.
func TestRatiosAreOfEachRun(t *testing.T) {
	if got, want := ratios([]float64{3, 6, 3}, []float64{2, 4, 2}), []float64{1.5, 1.5, 1.5}; !slices.Equal(got, want) {
		t.Errorf("ratios are %v, want %v", got, want)
	}
}

func TestTable(t *testing.T) {
	requests := 0.0
	c := Comparison{Ways: []Way{{Name: "bare"}, {Name: "ours"}}, Figures: append(Usual(1024, "MiB"),
		Figure{Title: "requests", Of: func(*Run) (float64, error) { return requests, nil }})}
	results := make([]result, 2)
	for way, run := range []Run{{Wall: 1, CPU: 0.5, Resident: 10}, {Wall: 1.5, CPU: 1, Resident: 20}} {
		for _, slower := range []float64{2, 4, 2} {
			c.Do = func(_ *Suite, r *Run) error {
				r.Wall, r.CPU, r.Resident = run.Wall*slower, run.CPU*slower, run.Resident
				return nil
			}
			requests = float64(1 + 2*way)
			values, err := (&Suite{}).measure(c, &Run{})
			require.NoError(t, err)
			results[way].add(values)
		}
	}
	lines := strings.Split(c.table(results), "\n")
	for i, want := range []string{
		"way wall s CPU s MiB/s CPU ms/MiB resident MiB requests wall, of bare CPU, of bare",
		"bare 2 (2-4) 1 (1-2) 512 0.977 10 1 1 1",
		"ours 3 (3-6) 2 (2-4) 341 1.95 20 3 1.50 (1.50-1.50) 2 (2-2)",
	} {
		if got := strings.Join(strings.Fields(lines[i]), " "); got != want {
			t.Errorf("line %d is\n%s, want\n%s", i, got, want)
		}
	}
}

func TestParseStat(t *testing.T) {
	got, err := parseStat("cpu  100 20 30 4000 500 6 7 8 90 10\ncpu0 1 2 3 4 5 6 7 8 9 10\n")
	if want := (cpuTimes{busy: 100 + 20 + 30 + 6 + 7 + 8, stolen: 8, total: 4671}); err != nil || got != want {
		t.Errorf("parseStat = %+v, %v, want %+v", got, err, want)
	}
	for _, stat := range []string{"", "cpu  1 2 3\n", "cpu0 1 2 3 4 5 6 7 8\n", "cpu 1 2 3 4 x 6 7 8\n"} {
		if got, err := parseStat(stat); err == nil {
			t.Errorf("parseStat(%q) = %+v, want an error", stat, got)
		}
	}
}

func TestVerdict(t *testing.T) {
	for _, test := range []struct {
		name   string
		busy   []float64
		stolen float64
		idle   bool
	}{
		{"idle", []float64{0, 0.02, 0.1, 0}, 0, true},
		{"always a little busy", []float64{0.06, 0.06, 0.06, 0.06}, 0, false},
		{"another program for a short time", []float64{0, 0, 0, 0, 0, 0, 0, 0, 0, 0.3}, 0, false},
		{"the hypervisor takes time", []float64{0, 0, 0, 0}, 0.02, false},
	} {
		if got := verdict(test.busy, test.stolen); strings.Contains(got, "NOT IDLE") == test.idle {
			t.Errorf("%s: %s", test.name, got)
		}
	}
}

func TestShare(t *testing.T) {
	if got := share(1, 4); got != 0.25 {
		t.Errorf("share(1, 4) = %v", got)
	}
	if got := share(0, 0); got != 0 {
		t.Errorf("share(0, 0) = %v", got)
	}
}
