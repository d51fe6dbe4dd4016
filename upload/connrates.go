package upload

import "time"

// connRates records the rate of a file for each number of connections, which is the
// index. Only bytes of finished parts count, because bytes that were handed to the
// network may only fill buffers. The bytes of a part are spread evenly over the time
// that it took.
type connRates []struct {
	took   time.Duration
	stored float64 // bytes
}

// addTime records how long the file had a number of connections.
func (p *connRates) addTime(connections int, took time.Duration) {
	for len(*p) <= connections {
		*p = append(*p, connRates{{}}...)
	}
	(*p)[connections].took += took
}

// addStored records that a part is finished. before is a copy of p from the start of the part.
func (p connRates) addStored(before connRates, bytes int64) {
	took := make([]time.Duration, len(p))
	var whole time.Duration
	for i := range p {
		took[i] = p[i].took
		if i < len(before) {
			took[i] -= before[i].took
		}
		whole += took[i]
	}
	if whole <= 0 {
		return
	}
	for i := range p {
		p[i].stored += float64(bytes) * float64(took[i]) / float64(whole)
	}
}

// measured returns the number of connections that carried the most bytes, their rate
// together, and the mean rate of a single connection over the whole time. Rates are in bytes
// per second, and 0 if they are not known.
func (p connRates) measured() (connections int, rate, each float64) {
	var sum time.Duration
	var most, stored float64
	for i, n := range p {
		if n.stored > 0 && n.stored >= most {
			connections, most = i, n.stored
			rate = n.stored / n.took.Seconds()
		}
		stored, sum = stored+n.stored, sum+time.Duration(i)*n.took
	}
	if sum > 0 {
		each = stored / sum.Seconds()
	}
	return connections, rate, each
}
