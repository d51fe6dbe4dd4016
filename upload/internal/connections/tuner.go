package connections

import (
	"math"
	"slices"
	"time"
)

// tuner chooses the number of connections over which parts are sent. It tries more
// connections as long as the total rate rises with them. It has no clock: observe
// gets the activity of the connections in each interval.
type tuner struct {
	limit int    // maximum of level
	level int    // connections to use
	steps []step // levels whose gain was worth their connections, ascending
	trial bool   // level is being compared with the last step
	long  bool   // the service answers late, see evaluateLong

	growth   float64 // factor by which the next trial raises level
	elapsed  int     // intervals since level was set
	usable   int     // of these, those in which enough connections sent
	mean     float64 // rate over the usable intervals except the first
	before   float64 // over a long link, mean as it was when usable was last reset; 0 if it was not
	moved    int64   // bytes in the same intervals
	hold     int     // intervals until the next trial
	lastHold int     // length of the last hold after a rejected trial

	rejected bool    // the last trial that ended was rejected
	fellFrom float64 // rate of the last step before it fell, during the trial that followed; otherwise 0
}

// step is a number of connections and the rate that they reached together, in bytes per second.
type step struct {
	connections int
	rate        float64
}

// interval is the activity of all connections in a period of time.
type interval struct {
	took    time.Duration
	moved   int64 // bytes that were sent
	sending int   // connections that moved bytes
	files   int   // files being sent; each has at least one connection
	limited bool  // a rate limit held bytes back
	failing bool  // the service fails, or asks for fewer requests
	bounded bool  // connections wait until fewer bytes are at risk
	left    int64 // over a long link, bytes of the files that are not committed; negative if not known
}

const (
	// minLevel is the minimum level after the first measurement. While one connection
	// waits for a reply, the other one sends.
	minLevel = 2

	// firstRaise is the second level. The first level is a single connection, with whose
	// rate the others are compared.
	firstRaise = 4

	// longLevel is the first level over a long link. TCP takes seconds there to find the rate of a new connection.
	// Any number of connections would therefore seem faster than the number before it.
	longLevel = 8

	// leastRate is the rate of a connection, in bytes per second, below which fewer connections are used over a long
	// link. A request at half of this rate is canceled after some minutes, and a part of a multipart upload then
	// begins at its first byte again. It is the default of StallRate.
	leastRate = 64 << 10

	// longTrial is how long the rest must take at the present rate for a trial over a long link. A trial takes about
	// ten seconds there. Afterwards all connections are slow for several seconds, even if they are fewer again.
	longTrial = time.Minute

	// trialIntervals is the number of usable intervals in which a trial must show a gain.
	// New connections need some round trips to reach their rate.
	trialIntervals = 8

	// clearIntervals is the number of usable intervals after which a trial with a clear gain ends, and the
	// measurement of the first level. On a slow link certainBytes take longer.
	clearIntervals = 4

	// certainBytes is the number of bytes that are needed to measure a rate, because a
	// connection moves 256 KiB at a time.
	certainBytes = 4 << 20

	// openIntervals is the number of intervals after which a trial is rejected if too few
	// of its connections send.
	openIntervals = 40

	// Lengths of a hold in intervals. It doubles with each rejected trial.
	firstHold, longestHold = 40, 240
)

func newTuner(limit int) tuner { return tuner{limit: limit, level: 1, trial: true, growth: 2} }

// resume returns to the last step, so that the next file starts with the result of
// earlier files.
func (t *tuner) resume() {
	if len(t.steps) > 0 {
		t.settle(trialIntervals)
	}
}

// setLong records whether the link is long. If that is new, the tuner starts over with the first level over a long link.
func (t *tuner) setLong(long bool) {
	if long && !t.long {
		*t = newTuner(t.limit)
		t.level = min(longLevel, t.limit)
	}
	t.long = long
}

// oneSuffices reports whether trials with more than minLevel connections showed no
// gain.
func (t *tuner) oneSuffices() bool {
	n := len(t.steps)
	return t.rejected && n > 0 && t.steps[n-1].connections <= minLevel
}

// observe evaluates an interval and may change the level.
func (t *tuner) observe(iv interval) {
	if iv.limited || iv.failing {
		// The rate means nothing, and more connections would not help.
		t.settle(max(t.lastHold, firstHold))
		t.level = max(t.level, min(minLevel, t.limit))
		return
	}
	// Start over if there are more files, because the rate of fewer connections cannot be measured, or if
	// there were more files than the limit, and some of them ended.
	if level := min(max(t.level, iv.files), max(t.limit, iv.files)); level != t.level {
		*t = tuner{limit: t.limit, level: level, trial: true, long: t.long, growth: t.growth}
		return
	}
	if 4*iv.sending < 3*t.level && iv.bounded {
		return // commits will permit the connections of this level
	}
	t.elapsed++
	if 4*iv.sending < 3*t.level {
		// Connections are being opened or are between two parts, or there are too few parts.
		if t.trial && t.elapsed > openIntervals && len(t.steps) > 0 {
			t.reject()
		}
		return
	}
	if t.usable++; t.usable == 1 {
		return // the bytes of the first interval only fill buffers
	}
	rate := float64(iv.moved) / iv.took.Seconds()
	counted := t.usable - 1
	t.moved += iv.moved
	if !t.trial {
		t.mean += (rate - t.mean) / float64(min(counted, trialIntervals))
		if counted >= clearIntervals && t.outdated() {
			t.restart(max(t.level, min(iv.sending, t.limit)), iv.left)
			return
		}
		if t.hold--; t.hold <= 0 {
			t.note(t.mean)
			t.raise(iv.left)
		}
		return
	}
	t.mean += (rate - t.mean) / float64(counted)
	if t.recovered(rate) {
		t.settle(trialIntervals)
		return
	}
	switch {
	case t.long:
		t.evaluateLong(counted, iv)
	case len(t.steps) == 0:
		if counted >= 2 && t.moved >= certainBytes/2 || counted >= clearIntervals {
			t.note(t.mean)
			t.raise(iv.left)
		}
	case iv.moved >= certainBytes && rate >= t.worth(2):
		t.accept(rate, iv.left)
	case counted >= clearIntervals && t.mean >= t.worth(2):
		t.accept(t.mean, iv.left)
	case counted >= 2 && t.moved >= certainBytes && t.mean >= t.worth(4), counted >= trialIntervals && t.mean >= t.worth(4):
		t.accept(t.mean, iv.left)
	case counted >= trialIntervals:
		t.reject()
	}
}

// evaluateLong ends the first measurement, or a trial, over a long link once the rate no longer rises by itself.
func (t *tuner) evaluateLong(counted int, iv interval) {
	switch {
	case counted < clearIntervals || t.rises():
	case len(t.steps) == 0:
		if fewer := max(int(t.mean/leastRate), minLevel, iv.files); fewer < t.level {
			t.level = fewer
			t.note(t.mean)
			t.settle(firstHold)
			return
		}
		t.note(t.mean)
		t.raise(iv.left)
	case t.mean >= t.worth(4):
		t.accept(t.mean, iv.left)
	default:
		t.reject()
	}
}

// rises reports whether the rate of level still rises by itself, and begins to measure it again in that case.
func (t *tuner) rises() bool {
	rises := t.mean >= 1.1*t.before
	t.before, t.usable = t.mean, 1
	return rises
}

// worth returns the rate that level must reach to be accepted: that of the last step, plus
// one nth of what the additional connections could add.
func (t *tuner) worth(n float64) float64 {
	last := t.steps[len(t.steps)-1]
	return last.gain(t.level, n)
}

// gain returns the rate of s plus one nth of what additional connections would add if nothing
// limited them.
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

// accept ends a trial that showed a gain, and begins the next one.
func (t *tuner) accept(rate float64, left int64) {
	t.note(rate)
	t.rejected, t.lastHold, t.fellFrom = false, 0, 0
	t.raise(left)
}

// reject ends a trial that showed no gain. It also removes steps that are no gain at the
// rate that the trial measured, if it measured one.
func (t *tuner) reject() {
	if t.mean > 0 {
		n := len(t.steps)
		for n > 1 && t.mean < t.steps[n-2].gain(t.steps[n-1].connections, 4) {
			n--
		}
		t.steps, t.rejected = t.steps[:n], true
	}
	t.growth = 1.5
	t.lastHold = min(max(2*t.lastHold, firstHold), longestHold)
	t.settle(t.lastHold)
}

// outdated reports whether the rate of the last step can no longer be reached. Either it was measured
// while the connections filled buffers, before the first packets were lost, or the link has changed.
func (t *tuner) outdated() bool {
	n := len(t.steps)
	return n > 0 && t.mean < 0.6*t.steps[n-1].rate
}

// restart begins a trial with more than a number of connections, which reach the mean rate. It keeps
// the steps whose rates are still possible.
func (t *tuner) restart(connections int, left int64) {
	before := t.steps[len(t.steps)-1].rate
	steps := slices.DeleteFunc(t.steps, func(s step) bool { return s.rate > t.mean || s.connections >= connections })
	*t = tuner{limit: t.limit, level: connections, long: t.long, steps: append(steps, step{connections, t.mean}), growth: 2, fellFrom: before}
	t.raise(left)
}

// recovered reports whether the rate that had fallen has come back. The fall was then a short stall, in
// comparison with which any number of connections would look like a gain.
func (t *tuner) recovered(rate float64) bool {
	if t.fellFrom == 0 {
		return false
	}
	last := t.steps[len(t.steps)-1]
	return rate >= 0.8*t.fellFrom && rate < step{last.connections, t.fellFrom}.gain(t.level, 4)
}

// settle returns to the last step and holds for some intervals.
func (t *tuner) settle(intervals int) {
	t.fellFrom = 0
	if n := len(t.steps); n > 0 {
		t.level = max(t.steps[n-1].connections, min(minLevel, t.limit))
		t.trial, t.hold = false, intervals
	}
	t.elapsed, t.usable, t.mean, t.before, t.moved = 0, 0, 0, 0, 0
}

// raise begins the next trial, unless level is at its limit, or too few bytes of the files are left. It then holds.
func (t *tuner) raise(left int64) {
	if rate := t.steps[len(t.steps)-1].rate; t.long && left >= 0 && float64(left) < rate*longTrial.Seconds() {
		t.settle(trialIntervals)
		return
	}
	next := int(math.Ceil(float64(t.level) * t.growth))
	if t.level == 1 {
		next = firstRaise
	}
	next = min(next, t.limit)
	if next <= t.level {
		t.settle(longestHold)
		return
	}
	t.level, t.trial = next, true
	t.elapsed, t.usable, t.mean, t.before, t.moved = 0, 0, 0, 0, 0
}
