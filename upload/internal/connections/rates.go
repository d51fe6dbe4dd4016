package connections

import "time"

// rates records the rate of a file for each number of connections, which is the
// index. Only bytes of finished parts count, because bytes that were handed to the
// network may only fill buffers. The bytes of a part are spread evenly over the time
// that it took.
type rates []struct {
	took   time.Duration
	stored float64 // bytes
}

// addTime records how long the file had a number of connections.
func (r *rates) addTime(connections int, took time.Duration) {
	for len(*r) <= connections {
		*r = append(*r, rates{{}}...)
	}
	(*r)[connections].took += took
}

// addStored records that a part is finished. before is a copy of r from the start of the part.
func (r rates) addStored(before rates, bytes int64) {
	took := make([]time.Duration, len(r))
	var whole time.Duration
	for i := range r {
		took[i] = r[i].took
		if i < len(before) {
			took[i] -= before[i].took
		}
		whole += took[i]
	}
	if whole <= 0 {
		return
	}
	for i := range r {
		r[i].stored += float64(bytes) * float64(took[i]) / float64(whole)
	}
}

// Usage describes the connections of a file. Rates are in bytes per second, and 0 if they are
// not known.
type Usage struct {
	Connections int     // the number that carried the most bytes
	Rate        float64 // of these together
	Each        float64 // mean of a single connection over the whole time
}

// usage returns the Usage so far.
func (r rates) usage() (u Usage) {
	var sum time.Duration
	var most, stored float64
	for i, n := range r {
		if n.stored > 0 && n.stored >= most {
			most = n.stored
			u.Connections, u.Rate = i, n.stored/n.took.Seconds()
		}
		stored, sum = stored+n.stored, sum+time.Duration(i)*n.took
	}
	if sum > 0 {
		u.Each = stored / sum.Seconds()
	}
	return u
}
