package upload

import "time"

// pace is how fast a file was sent with each number of connections. Only bytes of parts
// that the service has count, spread evenly over the time that their part took: when bytes
// are handed to the network, they may only fill buffers.
type pace []struct {
	took   time.Duration // with as many connections as the index
	stored float64       // bytes in this time
}

// pass notes that a time has passed with a number of connections.
func (p *pace) pass(connections int, took time.Duration) {
	for len(*p) <= connections {
		*p = append(*p, pace{{}}...)
	}
	(*p)[connections].took += took
}

// store notes that the service has the bytes of a part. before is a copy of the pace when
// the part began.
func (p pace) store(before pace, bytes int64) {
	took := func(i int) time.Duration {
		if i < len(before) {
			return p[i].took - before[i].took
		}
		return p[i].took
	}
	var whole time.Duration
	for i := range p {
		whole += took(i)
	}
	if whole <= 0 {
		return
	}
	for i := range p {
		p[i].stored += float64(bytes) * float64(took(i)) / float64(whole)
	}
}

// reached returns the number of connections that carried the most bytes, the bytes per
// second that the service got from them, and the mean rate of each connection in all of
// the time. A rate is 0 if it is not known.
func (p pace) reached() (connections int, rate, each float64) {
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
