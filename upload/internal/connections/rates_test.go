package connections

import (
	"math"
	"slices"
	"testing"
	"time"
)

// TestUsage checks the rates of a file: that of the number of connections that carried the most bytes, and that of one
// connection over the whole time. The bytes of a part count evenly for the time that it took, and only when it is finished.
func TestUsage(t *testing.T) {
	t.Parallel()
	type span struct {
		connections int
		seconds     int
	}
	type part struct{ from, to, bytes int } // the spans in which it was sent
	for _, test := range []struct {
		name  string
		spans []span
		parts []part
		want  Usage
	}{
		{"nothing", nil, nil, Usage{}},
		{"no part is finished", []span{{1, 10}}, nil, Usage{}},
		{"one connection", []span{{1, 10}}, []part{{0, 1, 100}}, Usage{1, 10, 10}},
		{"two parts at a time", []span{{2, 10}}, []part{{0, 1, 100}, {0, 1, 100}}, Usage{2, 20, 10}},
		{"idle before", []span{{0, 10}, {1, 10}}, []part{{1, 2, 100}}, Usage{1, 10, 10}},
		{"a part in both spans", []span{{1, 10}, {2, 30}}, []part{{0, 2, 400}, {1, 2, 100}}, Usage{2, 400.0 / 30, 500.0 / 70}},
		{"the second one sent less", []span{{2, 10}, {1, 10}}, []part{{0, 1, 300}, {0, 1, 300}, {1, 2, 200}}, Usage{2, 60, 800.0 / 30}},
		{"as much", []span{{1, 10}, {2, 10}}, []part{{0, 1, 100}, {1, 2, 50}, {1, 2, 50}}, Usage{2, 10, 200.0 / 30}},
		{"no time passed", []span{{1, 0}}, []part{{0, 1, 100}}, Usage{}},
	} {
		var r rates
		before := make([]rates, 0, len(test.spans)+1)
		for _, s := range test.spans {
			before = append(before, slices.Clone(r))
			r.addTime(s.connections, time.Duration(s.seconds)*time.Second)
			for _, p := range test.parts {
				if p.to == len(before) {
					r.addStored(before[p.from], int64(p.bytes))
				}
			}
		}
		got := r.usage()
		if got.Connections != test.want.Connections || math.Abs(got.Rate-test.want.Rate) > 1e-9 || math.Abs(got.Each-test.want.Each) > 1e-9 {
			t.Errorf("%s: %+v, want %+v", test.name, got, test.want)
		}
	}
}
