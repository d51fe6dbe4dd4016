package bucketstore

import (
	"time"

	"gcsup/session"
)

// SetClock makes s read its clocks with f.
func SetClock(s *Store, f func() (wall time.Time, monotonic time.Duration)) {
	s.clock = func() moment {
		wall, monotonic := f()
		return moment{wall: wall, monotonic: monotonic}
	}
}

// Name returns the unique name of a lease.
func Name(l session.Lease) string { return l.(*lease).object.name }

// The keys of the metadata that show who has a lease.
const (
	LeaseKey  = leaseKey
	HolderKey = holderKey
)

// ClockSuffix is the end of the name of an object that is written to read the service's clock.
const ClockSuffix = clockSuffix
