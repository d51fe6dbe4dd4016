package bucketstore

import "time"

// SetClock makes s read its clocks with f.
func SetClock(s *Store, f func() (wall time.Time, monotonic time.Duration)) {
	s.clock = func() moment {
		wall, monotonic := f()
		return moment{wall: wall, monotonic: monotonic}
	}
}
