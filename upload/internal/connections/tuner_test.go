package connections

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// network is a link whose rate depends on the number of connections.
type network struct {
	t       *testing.T
	tuner   tuner
	rate    func(connections int) float64 // bytes per second
	opening int                           // intervals until a new connection sends
	noise   float64                       // random change of the rate in each interval: 0.1 is up to 10 % up or down
	random  *rand.Rand

	at, sending int
	pending     []int // for each connection being opened, the interval from which it sends
}

const tick = 250 * time.Millisecond

func newNetwork(t *testing.T, limit int, rate func(int) float64) *network {
	return &network{t: t, tuner: newTuner(limit), rate: rate, random: rand.New(rand.NewPCG(1, 2))}
}

// pass simulates intervals, each modified by change if it is not nil. It returns the level
// after them.
func (n *network) pass(intervals int, change func(*interval)) int {
	for range intervals {
		n.at++
		n.sending = min(n.sending, n.tuner.level)
		for len(n.pending) > 0 && n.pending[0] <= n.at {
			n.pending, n.sending = n.pending[1:], n.sending+1
		}
		for n.sending+len(n.pending) < n.tuner.level {
			n.pending = append(n.pending, n.at+n.opening)
		}
		rate := n.rate(n.sending) * (1 + n.noise*(2*n.random.Float64()-1))
		iv := interval{took: tick, moved: int64(rate * tick.Seconds()), sending: n.sending}
		if change != nil {
			change(&iv)
		}
		n.tuner.observe(iv)
		if n.tuner.level < 1 || n.tuner.level > n.tuner.limit {
			n.t.Fatalf("level %d of %d", n.tuner.level, n.tuner.limit)
		}
	}
	return n.tuner.level
}

const mibps = float64(1 << 20)

// each returns the rate of a link that limits each connection to 20 MiB/s.
func each(connections int) float64 { return 20 * mibps * float64(connections) }

// sharedLink returns a link that also limits all connections together, to a multiple of the
// rate of one.
func sharedLink(multiple float64) func(int) float64 {
	return func(connections int) float64 { return min(each(connections), multiple*20*mibps) }
}

// TestTunerSlow checks that the tuner reaches the limit soon on a link whose connections are all slow
// because it loses packets, as with 1 % loss, 150 ms and cubic.
func TestTunerSlow(t *testing.T) {
	t.Parallel()
	const step = 32 << 10
	for kib, intervals := range map[int]int{100: 24, 300: 24, 1000: 20} { // of each connection, per second
		n := newNetwork(t, 32, func(connections int) float64 { return float64(connections*kib) * 1024 })
		n.noise = 0.2
		var left int64
		at := 0
		for n.tuner.level < 32 && at < 100 {
			at++
			n.pass(1, func(iv *interval) {
				iv.moved, left = (iv.moved+left)/step*step, (iv.moved+left)%step
			})
		}
		if at > intervals {
			t.Errorf("%d KiB/s: the limit was reached after %d intervals, want %d", kib, at, intervals)
		}
	}
}

// TestTunerForgetsBuffers checks that the rate of the first connection, which is much too high
// while the connection fills buffers, does not keep the tuner from using more.
func TestTunerForgetsBuffers(t *testing.T) {
	t.Parallel()
	n := newNetwork(t, 32, func(connections int) float64 { return float64(connections) * mibps / 8 })
	n.noise = 0.2
	if level := n.pass(40, func(iv *interval) {
		if n.at < 7 {
			iv.moved *= 8
		}
	}); level != 32 {
		t.Errorf("%d connections after 40 intervals", level)
	}
}

// TestTunerAwaitsTheRate checks that over a long link no trial begins while TCP still raises the rate of new connections.
// The trial would seem to be the cause of the higher rate.
func TestTunerAwaitsTheRate(t *testing.T) {
	t.Parallel()
	n := newNetwork(t, 64, sharedLink(8))
	n.tuner.setLong(true)
	n.pass(100, func(iv *interval) { iv.moved, iv.left = iv.moved*int64(min(n.at, 40))/40, -1 })
	if s := n.tuner.steps; len(s) != 1 || s[0].connections != longLevel || s[0].rate < 0.9*8*20*mibps {
		t.Errorf("steps %+v", s)
	}
}

// TestTunerFindsTheBottleneck checks that the tuner uses about as many connections as the link
// has room for, even if the rate is noisy.
func TestTunerFindsTheBottleneck(t *testing.T) {
	t.Parallel()
	for _, multiple := range []float64{4, 8, 12} {
		for _, noise := range []float64{0, 0.1, 0.2} {
			n := newNetwork(t, 32, sharedLink(multiple))
			n.noise = noise
			n.pass(100, nil)
			rate, used := 0.0, 0
			for range 4000 {
				n.pass(1, nil)
				rate += min(float64(n.tuner.level), multiple) / multiple / 4000
				used += n.tuner.level
			}
			if mean := float64(used) / 4000; rate < 0.9 || mean > 2.5*multiple {
				t.Errorf("room for %.0f, noise %.1f: %.2f of the rate with %.1f connections", multiple, noise, rate, mean)
			}
		}
	}
}

// TestTunerLowers checks that the tuner uses fewer connections after the link got slower for all
// of them together.
func TestTunerLowers(t *testing.T) {
	t.Parallel()
	n := newNetwork(t, 48, sharedLink(16))
	if level := n.pass(100, nil); level < 16 {
		t.Fatalf("%d connections", level)
	}
	n.rate = sharedLink(2)
	if n.pass(4*300, nil); n.tuner.level > 8 {
		t.Errorf("%d connections of a link with room for 2", n.tuner.level)
	}
}

// TestTunerHolds checks that the tuner adds no connections while a rate limit holds
// bytes back or the service fails, and does not conclude that more connections are no
// gain.
func TestTunerHolds(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*interval){
		"limited": func(iv *interval) { iv.limited, iv.moved = true, int64(mibps) },
		"failing": func(iv *interval) { iv.failing, iv.moved, iv.sending = true, 0, 0 },
	} {
		n := newNetwork(t, 32, each)
		n.pass(7, nil)
		before := n.tuner.level
		if after := n.pass(400, change); after > before || after < minLevel || n.tuner.oneSuffices() {
			t.Errorf("%s: from %d to %d connections, one suffices: %v", name, before, after, n.tuner.oneSuffices())
		}
		if n.pass(200, nil) != 32 {
			t.Errorf("%s: the tuner did not resume", name)
		}
	}
	// The condition holds from the beginning.
	n := newNetwork(t, 32, each)
	if after := n.pass(400, func(iv *interval) { iv.limited = true }); after != minLevel {
		t.Errorf("limited from the beginning: %d connections", after)
	}
}

// TestTunerFewParts checks that the tuner keeps the number of connections if fewer parts are
// left.
func TestTunerFewParts(t *testing.T) {
	t.Parallel()
	n := newNetwork(t, 32, each)
	n.pass(40, nil)
	n.pass(500, func(iv *interval) { iv.sending, iv.moved = 3, iv.moved/10 })
	if n.tuner.level < 16 || n.tuner.oneSuffices() {
		t.Errorf("%d connections", n.tuner.level)
	}
}

// TestTunerLastParts checks that a trial for which too few parts are left keeps what earlier ones have shown: it has measured no
// rate.
func TestTunerLastParts(t *testing.T) {
	t.Parallel()
	for _, long := range []bool{false, true} {
		n := newNetwork(t, 64, each)
		n.tuner.setLong(long)
		for n.tuner.level < 32 {
			n.pass(1, func(iv *interval) { iv.left = -1 })
		}
		n.pass(2*openIntervals, func(iv *interval) { iv.sending, iv.left = 20, -1 })
		if s := n.tuner.steps; n.tuner.level != 16 || s[len(s)-1].connections != 16 || n.tuner.oneSuffices() {
			t.Errorf("long %v: %d connections, steps %+v, one suffices: %v", long, n.tuner.level, s, n.tuner.oneSuffices())
		}
	}
}

// TestTunerSurvivesStalls checks that short stalls of a link that is full do not raise the number of
// connections.
func TestTunerSurvivesStalls(t *testing.T) {
	t.Parallel()
	for _, stalled := range []int{4, 6, 9} { // intervals
		for _, rest := range []float64{0, 0.3} { // of the rate
			n := newNetwork(t, Max, sharedLink(8))
			n.pass(200, nil)
			before := n.tuner.level
			for range 6 {
				n.pass(stalled, func(iv *interval) { iv.moved = int64(float64(iv.moved) * rest) })
				n.pass(300, nil)
			}
			if after := n.tuner.level; after > 24 {
				t.Errorf("%d intervals at %.1f of the rate, six times: from %d to %d connections of a link with room for 8", stalled, rest, before, after)
			}
		}
	}
}

// TestTunerFilesEnd checks that the number of connections falls to its limit when fewer files than that
// are left.
func TestTunerFilesEnd(t *testing.T) {
	t.Parallel()
	tuner := newTuner(8)
	for range 100 {
		tuner.observe(interval{took: tick, moved: 100 << 20, sending: 20, files: 20})
	}
	if tuner.level != 20 {
		t.Fatalf("%d connections for 20 files", tuner.level)
	}
	for range 100 {
		tuner.observe(interval{took: tick, moved: 100 << 20, sending: min(tuner.level, 8), files: 3})
	}
	if tuner.level > 8 {
		t.Errorf("%d connections for 3 files", tuner.level)
	}
}

// A trial is not rejected while the bound of the bytes at risk keeps its connections from their begin.
func TestTunerBounded(t *testing.T) {
	t.Parallel()
	tu := newTuner(64)
	observe := func(n, sending int, bounded bool) {
		for range n {
			tu.observe(interval{took: tuneEvery, moved: int64(sending) << 20, sending: sending, files: 1, bounded: bounded})
		}
	}
	observe(10, 1, false)
	if tu.level != firstRaise || !tu.trial {
		t.Fatalf("level %d, trial %t", tu.level, tu.trial)
	}
	observe(10*openIntervals, 1, true)
	if tu.level != firstRaise || !tu.trial {
		t.Errorf("level %d, trial %t, after intervals in which connections waited", tu.level, tu.trial)
	}
	observe(trialIntervals+1, firstRaise, true)
	if tu.level != 2*firstRaise {
		t.Errorf("level %d, want %d", tu.level, 2*firstRaise)
	}
}

// TestTunerSteps checks how many intervals each number of connections lasts. Two more than the names tell do not count: in
// the first one new connections are opened, and in the second one they fill buffers.
func TestTunerSteps(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		limit   int
		opening int // intervals
		rate    func(int) float64
		long    time.Duration // what is left over a long link, at the rate of eight connections; 0 if the link is not long
		want    string
	}{
		{"a clear gain: one interval", 32, 0, each, 0, "1 for 3, 4 for 3, 8 for 3, 16 for 3, 32"},
		{"a clear gain, with connections that open in two intervals", Max, 2, each, 0, "1 for 3, 4 for 4, 8 for 4, 16 for 4, 32 for 4, 64 for 4, 128 for 4, 256"},
		{"over a slow link: four", 8, 0, func(n int) float64 { return float64(n) * mibps / 2 }, 0, "1 for 5, 4 for 6, 8"},
		{"a small gain: eight", 8, 0, func(n int) float64 { return float64(2+n) * mibps / 6 }, 0, "1 for 5, 4 for 10, 8"},
		{"no gain: eight, and then a hold that doubles from 40 to 240", 32, 0, sharedLink(1), 0, "1 for 3, 4 for 10, 2 for 41, 3 for 10, 2 for 81, 3 for 10, 2 for 161, 3 for 10, 2 for 241, 3 for 10, 2"},
		{"a gain up to eight", 32, 0, sharedLink(8), 0, "1 for 3, 4 for 3, 8 for 3, 16 for 10, 8 for 41, 12 for 10, 8 for 81, 12 for 10, 8 for 161, 12 for 10, 8 for 241, 12 for 10, 8"},
		{"up to the limit", 3, 0, each, 0, "1 for 3, 3"},
		{"over a long link: eight, and as many for each trial", 32, 0, each, time.Hour, "8 for 9, 16 for 10, 32"},
		{"over a long link that has room for eight", 32, 0, sharedLink(8), time.Hour, "8 for 9, 16 for 10, 8 for 41, 12 for 10, 8 for 81, 12 for 10, 8 for 161, 12 for 10, 8 for 241, 12 for 10, 8"},
		{"over a long link, with less than a minute left", 32, 0, each, longTrial - 1, "8"},
		{"over a long link too slow for eight", 32, 0, func(int) float64 { return 3.5 * leastRate }, time.Hour, "8 for 9, 3 for 41, 6 for 10, 3 for 41, 5 for 10, 3 for 81, 5 for 10, 3 for 161, 5 for 10, 3"},
		{"over a long link whose connections are slow", 32, 0, func(n int) float64 { return float64(n) * leastRate * 0.9 }, time.Hour, "8 for 9, 7 for 41, 14 for 10, 28 for 10, 32"},
		{"connections that do not open: forty", 8, 1000, each, 0, "1 for 3, 4 for 41, 2"},
	} {
		n := newNetwork(t, test.limit, test.rate)
		n.sending, n.opening = 1, test.opening
		left := int64(-1)
		if test.long != 0 {
			n.tuner.setLong(true)
			n.sending, left = n.tuner.level, int64(test.long.Seconds()*test.rate(longLevel))
		}
		var trace []string
		last, since := n.tuner.level, 0
		for i := range 600 {
			if level := n.pass(1, func(iv *interval) { iv.left = left }); level != last {
				trace = append(trace, fmt.Sprintf("%d for %d", last, i+1-since))
				last, since = level, i+1
			}
		}
		if got := strings.Join(append(trace, fmt.Sprint(last)), ", "); got != test.want {
			t.Errorf("%s: %s", test.name, got)
		}
	}
}
