package upload

import (
	"math/rand/v2"
	"testing"
	"time"
)

// network is a link whose rate depends on the number of connections.
type network struct {
	t       *testing.T
	tuner   tuner
	rate    func(connections int) float64 // bytes per second
	opening int                           // intervals until a new connection sends
	noise   float64                       // of the rate, in both directions
	random  *rand.Rand

	at, sending int
	pending     []int // the interval at which each connection that is opened sends
}

const tick = 250 * time.Millisecond

func newNetwork(t *testing.T, most int, rate func(int) float64) *network {
	return &network{t: t, tuner: newTuner(most), rate: rate, random: rand.New(rand.NewPCG(1, 2))}
}

// pass lets intervals pass, and returns the level after them.
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
		if n.tuner.level < 1 || n.tuner.level > n.tuner.most {
			n.t.Fatalf("level %d of %d", n.tuner.level, n.tuner.most)
		}
	}
	return n.tuner.level
}

const mibps = float64(1 << 20)

// each is a link that limits each connection.
func each(connections int) float64 { return 20 * mibps * float64(connections) }

// shared is a link that limits all connections together to a multiple of what one reaches.
func sharedLink(multiple float64) func(int) float64 {
	return func(connections int) float64 { return min(each(connections), multiple*20*mibps) }
}

// Each connection has a limit: the tuner gets to the most in seconds.
func TestTunerRaises(t *testing.T) {
	t.Parallel()
	for _, opening := range []int{0, 2, 4} {
		n := newNetwork(t, 32, each)
		n.opening = opening
		if level := n.pass(4*(5+2*opening), nil); level != 32 {
			t.Errorf("opening takes %d intervals: %d connections after %d s", opening, level, 5+2*opening)
		}
		if s := n.tuner.steps; s[0] != (step{1, 20 * mibps}) || s[len(s)-1].connections < 16 {
			t.Errorf("reached %+v", s)
		}
		if n.pass(1000, nil) != 32 {
			t.Errorf("it did not stay at 32 connections")
		}
	}
}

// One connection fills the link: two remain, and trials get rare.
func TestTunerSuffices(t *testing.T) {
	t.Parallel()
	n := newNetwork(t, 32, sharedLink(1))
	n.pass(40, nil)
	if n.tuner.level != enough || !n.tuner.suffices() {
		t.Errorf("%d connections, suffices %v", n.tuner.level, n.tuner.suffices())
	}
	more := 0
	for range 4 * 600 {
		if n.pass(1, nil) > enough {
			more++
		}
	}
	if more == 0 || more > 4*60 {
		t.Errorf("more than %d connections in %d of 2400 intervals", enough, more)
	}
}

// The link has room for some connections. The tuner uses about as many, whatever noise
// there is.
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

// A link gets slower for all connections together. The next trial shows that most of the
// connections are useless.
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

// While a rate limit holds bytes back, or the service fails, the tuner neither adds
// connections nor learns that they are useless.
func TestTunerHolds(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*interval){
		"limited": func(iv *interval) { iv.limited, iv.moved = true, int64(mibps) },
		"refused": func(iv *interval) { iv.refused, iv.moved, iv.sending = true, 0, 0 },
	} {
		n := newNetwork(t, 32, each)
		n.pass(7, nil)
		before := n.tuner.level
		if after := n.pass(400, change); after > before || after < enough || n.tuner.suffices() {
			t.Errorf("%s: from %d to %d connections, suffices %v", name, before, after, n.tuner.suffices())
		}
		if n.pass(200, nil) != 32 {
			t.Errorf("%s: it did not continue", name)
		}
	}
	// From the beginning.
	n := newNetwork(t, 32, each)
	if after := n.pass(400, func(iv *interval) { iv.limited = true }); after != enough {
		t.Errorf("limited from the beginning: %d connections", after)
	}
}

// Fewer parts are left than connections: that is no reason to lower their number.
func TestTunerFewParts(t *testing.T) {
	t.Parallel()
	n := newNetwork(t, 32, each)
	n.pass(40, nil)
	n.pass(500, func(iv *interval) { iv.sending, iv.moved = 3, iv.moved/10 })
	if n.tuner.level < 16 || n.tuner.suffices() {
		t.Errorf("%d connections", n.tuner.level)
	}
}

// The next file of a run begins with what the last one showed.
func TestTunerResumes(t *testing.T) {
	t.Parallel()
	n := newNetwork(t, 16, each)
	n.pass(60, nil)
	n.tuner.resume()
	if n.tuner.level != 16 {
		t.Errorf("%d connections", n.tuner.level)
	}
}
