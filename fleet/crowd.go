package fleet

import (
	"cmp"
	"hash/fnv"
	"time"
)

// condition is what the other workers know of a worker.
type condition string

const (
	idle      condition = "idle"     // it has no task
	sending   condition = "sending"  // it has tasks, and the service answers
	inTrouble condition = "troubled" // it has tasks, and its requests fail
	waiting   condition = "waiting"  // it takes no tasks until the gate admits it
)

// crowd is what a worker knows of all workers of the fleet, itself included, by name.
type crowd map[string]condition

// share returns the part of a rate, in bytes per second, that a worker may use: the
// workers that have tasks share it equally. One that has none yet gets the part that it
// would have if all had tasks, because many may begin before they hear of each other.
func (c crowd) share(rate float64, name string) float64 {
	busy := 0
	for other, cond := range c {
		if other == name || cond == sending || cond == inTrouble || c[name] == idle {
			busy++
		}
	}
	return rate / float64(max(busy, 1))
}

// gateEpoch is how long the gate admits the same workers. A worker that cannot reach the
// service for reasons of its own must not be the only one that tries.
const gateEpoch = 30 * time.Second

// admits reports whether a worker may take tasks. As long as at most one worker is in
// trouble, all may: its own retries wait. If more are, the service has trouble, and as
// many of the others may try it as there are workers that it answers, at least one. This
// includes workers that have no task yet. After an outage the number of workers that may
// send therefore doubles each time they hear of each other.
//
// The order in which workers are admitted depends on their names and the time only, so
// that all workers agree on it.
func (c crowd) admits(name string, now time.Time) bool {
	epoch := now.UnixNano() / int64(gateEpoch)
	own := rank(name, epoch)
	var answered, trouble, before int
	for other, cond := range c {
		if cond == sending {
			answered++
			continue
		}
		if cond != idle {
			trouble++
		}
		if cmp.Or(cmp.Compare(rank(other, epoch), own), cmp.Compare(other, name)) < 0 {
			before++
		}
	}
	return trouble < 2 || c[name] == sending || before < max(1, answered)
}

// rank orders the workers within an epoch.
func rank(name string, epoch int64) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	for i := range 8 {
		_, _ = h.Write([]byte{byte(epoch >> (8 * i))})
	}
	return h.Sum32()
}
