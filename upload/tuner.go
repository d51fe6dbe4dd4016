package upload

import (
	"math"
	"time"
)

// tuner chooses over how many connections parts are sent: more as long as the total rate
// rises with them. It has no clock. It gets what the connections did in each interval.
type tuner struct {
	most  int    // connections that it may choose
	level int    // connections to use
	steps []step // levels that were worth their connections, ascending
	trial bool   // level is compared with the last step

	wider  float64 // factor of the next trial
	opened int     // intervals since level was set
	seen   int     // of these, those with enough connections that sent
	mean   float64 // rate of those that count
	moved  int64   // in those
	hold   int     // intervals until the next trial
	pause  int     // length of the last hold

	useless bool // a trial failed since the last one that succeeded
}

// step is a number of connections, and the bytes per second that they reached.
type step struct {
	connections int
	rate        float64
}

// interval is what all connections did in a time.
type interval struct {
	took    time.Duration
	moved   int64 // bytes
	sending int   // connections that move some
	files   int   // that are sent; each has a connection at least
	limited bool  // a rate limit held bytes back
	refused bool  // the service fails, or asks for fewer requests
}

const (
	// enough is how many connections at least send in parts. While one waits for a
	// reply, the other one sends.
	enough = 2

	// firstRaise is the second level. The first one is a single connection, so that its
	// rate is known.
	firstRaise = 4

	// patience is how many intervals a trial gets to show a gain: new connections need
	// some round trips to reach their rate.
	patience = 8

	// certain is how many bytes show a rate: a connection moves 256 KiB at a time.
	certain = 4 << 20

	// openPatience is how many intervals connections get to send at all.
	openPatience = 40

	// Lengths of a hold in intervals. It doubles with each trial that fails.
	firstHold, longestHold = 40, 240
)

func newTuner(most int) tuner { return tuner{most: most, level: 1, trial: true, wider: 2} }

// resume continues with what earlier files showed.
func (t *tuner) resume() {
	if len(t.steps) > 0 {
		t.settle(patience)
	}
}

// suffices reports whether a single connection is as good as several.
func (t *tuner) suffices() bool {
	n := len(t.steps)
	return t.useless && n > 0 && t.steps[n-1].connections <= enough
}

// observe judges an interval.
func (t *tuner) observe(iv interval) {
	if iv.limited || iv.refused {
		// The rate says nothing, and more connections would not help.
		t.settle(max(t.pause, firstHold))
		t.level = max(t.level, min(enough, t.most))
		return
	}
	if t.level < iv.files { // what fewer connections reached is not known
		*t = tuner{most: t.most, level: iv.files, trial: true, wider: t.wider}
		return
	}
	t.opened++
	if 4*iv.sending < 3*t.level {
		// Some are being opened or between two parts, or there are not enough parts.
		if t.trial && t.opened > openPatience && len(t.steps) > 0 {
			t.reject()
		}
		return
	}
	if t.seen++; t.seen == 1 {
		return // the first bytes only fill buffers
	}
	rate := float64(iv.moved) / iv.took.Seconds()
	counted := t.seen - 1
	t.moved += iv.moved
	if !t.trial {
		t.mean += (rate - t.mean) / float64(min(counted, patience))
		if t.hold--; t.hold <= 0 {
			t.note(t.mean)
			t.raise()
		}
		return
	}
	t.mean += (rate - t.mean) / float64(counted)
	switch {
	case len(t.steps) == 0:
		if counted >= 2 && t.moved >= certain/2 || counted >= patience {
			t.note(t.mean)
			t.raise()
		}
	case iv.moved >= certain && rate >= t.worth(2):
		t.accept(rate)
	case counted >= 2 && t.moved >= certain && t.mean >= t.worth(4), counted >= patience && t.mean >= t.worth(4):
		t.accept(t.mean)
	case counted >= patience:
		t.reject()
	}
}

// worth returns the rate that level must reach: that of the last step, and one nth of
// what the additional connections would add if nothing limited them.
func (t *tuner) worth(n float64) float64 {
	last := t.steps[len(t.steps)-1]
	return last.gain(t.level, n)
}

// gain returns the rate of s with one nth of what more connections could add.
func (s step) gain(connections int, n float64) float64 {
	return s.rate * (1 + (float64(connections)/float64(s.connections)-1)/n)
}

// note records the rate of level.
func (t *tuner) note(rate float64) {
	if n := len(t.steps); n > 0 && t.steps[n-1].connections == t.level {
		t.steps[n-1].rate = rate
		return
	}
	t.steps = append(t.steps, step{t.level, rate})
}

func (t *tuner) accept(rate float64) {
	t.note(rate)
	t.useless, t.pause = false, 0
	t.raise()
}

// reject ends a trial that showed no gain. Lower steps may turn out to have been none.
func (t *tuner) reject() {
	n := len(t.steps)
	for n > 1 && t.mean < t.steps[n-2].gain(t.steps[n-1].connections, 4) {
		n--
	}
	t.steps = t.steps[:n]
	t.useless, t.wider = true, 1.5
	t.pause = min(max(2*t.pause, firstHold), longestHold)
	t.settle(t.pause)
}

// settle stays at the last step for some intervals.
func (t *tuner) settle(intervals int) {
	if n := len(t.steps); n > 0 {
		t.level = max(t.steps[n-1].connections, min(enough, t.most))
		t.trial, t.hold = false, intervals
	}
	t.opened, t.seen, t.mean, t.moved = 0, 0, 0, 0
}

// raise begins the next trial, if there may be more connections.
func (t *tuner) raise() {
	next := int(math.Ceil(float64(t.level) * t.wider))
	if t.level == 1 {
		next = firstRaise
	}
	next = min(next, t.most)
	if next <= t.level {
		t.settle(longestHold)
		return
	}
	t.level, t.trial = next, true
	t.opened, t.seen, t.mean, t.moved = 0, 0, 0, 0
}
