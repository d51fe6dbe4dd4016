package badlink

import (
	"math/rand/v2"
	"time"
)

// Conditions describe one direction of a link. Both directions of a link have the same.
type Conditions struct {
	Delay   time.Duration // of each packet: half of the round trip
	Jitter  time.Duration // a packet is up to this much later; the order remains
	Loss    float64       // share of the packets that are lost
	Reorder float64       // share of the packets that are late, so that others overtake them
	Late    time.Duration // how late these are
	Rate    int64         // bytes per second; 0 means no limit
	Queue   int64         // with Rate: bytes that may wait; packets that do not fit are lost
}

// shaper decides about each packet of one direction. It is not safe for concurrent use.
type shaper struct {
	Conditions
	random *rand.Rand
	free   time.Time // when the link has sent all packets before
	last   time.Time // the latest arrival of a packet that is in order
}

func newShaper(c Conditions, seed uint64) *shaper {
	return &shaper{Conditions: c, random: rand.New(rand.NewPCG(seed, 0))}
}

// pass returns when a packet of size bytes arrives that is sent now. ok is false if it is
// lost.
func (s *shaper) pass(now time.Time, size int) (due time.Time, ok bool) {
	sent := now
	if s.Rate > 0 {
		sent = later(now, s.free)
		if waiting := int64(sent.Sub(now).Seconds() * float64(s.Rate)); waiting+int64(size) > s.Queue {
			return time.Time{}, false
		}
		sent = sent.Add(time.Duration(float64(size) / float64(s.Rate) * float64(time.Second)))
		s.free = sent
	}
	if s.random.Float64() < s.Loss {
		return time.Time{}, false
	}
	due = sent.Add(s.Delay)
	if s.Jitter > 0 {
		due = due.Add(time.Duration(s.random.Int64N(int64(s.Jitter))))
	}
	if s.random.Float64() < s.Reorder {
		return due.Add(s.Late), true
	}
	s.last = later(due, s.last)
	return s.last, true
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
