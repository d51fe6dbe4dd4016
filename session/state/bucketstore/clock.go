package bucketstore

import "time"

// moment is a reading of both clocks of this machine.
type moment struct {
	wall      time.Time     // without a monotonic reading
	monotonic time.Duration // since the process started
}

var start = time.Now()

// now reads the clocks.
func now() moment {
	t := time.Now()
	return moment{wall: t.Round(0), monotonic: t.Sub(start)}
}

// since returns the time from earlier to m, by the clock on which it is longer. The monotonic
// clock may stop while the machine is suspended, and the wall clock may be set back.
func (m moment) since(earlier moment) time.Duration {
	return max(m.wall.Sub(earlier.wall), m.monotonic-earlier.monotonic)
}
