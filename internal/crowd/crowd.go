// Package crowd decides from the conditions of all workers of a fleet what one of them may do. Its
// functions are pure, so that all workers reach the same decisions without a leader.
package crowd

import (
	"cmp"
	"time"
)

// Condition is the condition of a worker, which it publishes to the others.
type Condition string

const (
	Idle     Condition = "idle"     // no task, and no recent answer of the service
	Ready    Condition = "ready"    // no task, and an answer of the service within the last Epoch
	Sending  Condition = "sending"  // has tasks, and the service answers
	Troubled Condition = "troubled" // has tasks, and its last requests failed, see TroubleRow
	Waiting  Condition = "waiting"  // takes no tasks until Admits returns true
	Unfit    Condition = "unfit"    // all its last tasks failed for a reason of its own
)

// Crowd maps the names of all workers of a fleet to their conditions, as one worker
// has received them. It includes that worker.
type Crowd map[string]Condition

// Share returns the part of a rate, in bytes per second, that the worker with a name
// may use. The workers of Sharing share the rate equally.
func (c Crowd) Share(rate float64, name string) float64 {
	_, workers := c.Sharing(name)
	return rate / float64(workers)
}

// Sharing returns the number of workers with which the worker with a name shares a rate, itself
// included, and its number among them in the order of their names, from 0. These are the workers that
// have tasks. A worker without a task shares with all workers, because many may
// begin before they receive each other's conditions.
func (c Crowd) Sharing(name string) (number, workers int) {
	for other, cond := range c {
		if other == name || cond == Sending || cond == Troubled || c[name] == Idle || c[name] == Ready {
			workers++
			if other < name {
				number++
			}
		}
	}
	return number, max(workers, 1)
}

// Epoch is how long Admits chooses the same workers, and how long an answer of the
// service counts as recent. The choice changes because a chosen worker may be unable
// to reach the service for local reasons.
const Epoch = 30 * time.Second

// Admits reports whether the worker with a name may take tasks. If at most one worker
// is Troubled or Waiting, all may: a single worker is limited by its own backoff. If
// there are more, the service itself fails. The workers that it answers may then take
// tasks. So may an equal number of the others, and at least one. After an outage, the
// number of admitted workers therefore doubles with each exchange of conditions.
//
// The order in which workers are admitted depends only on their names and the time, so that all
// workers agree on it.
func (c Crowd) Admits(name string, now time.Time) bool {
	var answered, trouble int
	for _, cond := range c {
		switch cond {
		case Sending, Ready:
			answered++
		case Troubled, Waiting:
			trouble++
		}
	}
	if trouble < 2 || c[name] == Sending || c[name] == Ready {
		return true
	}
	epoch := now.UnixNano() / int64(Epoch)
	own := rank(name, epoch)
	before := 0
	for other, cond := range c {
		if cond != Sending && cond != Ready && cond != Unfit && cmp.Or(cmp.Compare(rank(other, epoch), own), cmp.Compare(other, name)) < 0 {
			before++
		}
	}
	return before < max(1, answered)
}

// rank orders the workers within an epoch. It is an FNV-1a hash of the name and the
// epoch. It must be cheap, because each worker computes it for all workers at every
// beat.
func rank(name string, epoch int64) uint32 {
	h := uint32(2166136261)
	for i := range len(name) {
		h = (h ^ uint32(name[i])) * 16777619
	}
	for shift := 0; shift < 64; shift += 8 {
		h = (h ^ uint32(byte(epoch>>shift))) * 16777619
	}
	return h
}

// MaxInterval is the longest time between two beats of a worker.
const MaxInterval = 15 * time.Second

// Interval returns the time between two beats of a worker, from 2 s to MaxInterval.
// At each beat, a worker publishes its condition and reads those of the others, so
// the cost of a beat grows with the number of workers.
func Interval(workers int) time.Duration {
	return min(max(time.Duration(workers)*20*time.Millisecond, 2*time.Second), MaxInterval)
}

// TroubleRow is the number of consecutive failed requests after which a worker is
// Troubled. It is the default threshold of backoff.Breaker.
const TroubleRow = 5
