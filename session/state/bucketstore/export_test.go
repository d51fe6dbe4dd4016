package bucketstore

import (
	"time"

	"gcsup/session/state"
)

// SetClock makes s read its clocks with f.
func SetClock(s *Store, f func() (wall time.Time, monotonic time.Duration)) {
	s.clock = func() moment {
		wall, monotonic := f()
		return moment{wall: wall, monotonic: monotonic}
	}
}

// SetProcess makes s the Store of another process, and ended decide whether one has ended.
func SetProcess(s *Store, place string, pid int, started string, ended func(pid int) bool) {
	s.self = process{place, pid, started}
	if ended != nil {
		s.ended = func(p process) bool { return ended(p.pid) }
	}
}

// Process returns what the leases of s show of its process.
func Process(s *Store) (place string, pid int, started string) {
	return s.self.place, s.self.pid, s.self.started
}

// Name returns the unique name of a lease.
func Name(l state.Lease) string { return l.(*lease).object.name }

// The keys of the metadata that show who has a lease.
const (
	LeaseKey  = leaseKey
	HolderKey = holderKey
)

// ClockSuffix is the end of the name of an object that is written to read the service's clock.
const ClockSuffix = clockSuffix
