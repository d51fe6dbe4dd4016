// Package crowd decides what one worker of a fleet may do, by the conditions of all workers.
// Its functions are pure: all workers compute the same, without a leader.
package crowd

import (
	"cmp"
	"time"
)

// Condition is what the other workers know of a worker.
type Condition string

const (
	Idle     Condition = "idle"     // it has no task, and does not know whether the service answers
	Ready    Condition = "ready"    // it has no task, and the service answered it within an Epoch
	Sending  Condition = "sending"  // it has tasks, and the service answers
	Troubled Condition = "troubled" // it has tasks, and its requests fail
	Waiting  Condition = "waiting"  // it takes no tasks until the gate admits it
)

// Crowd is what a worker knows of all workers of the fleet, itself included, by name.
type Crowd map[string]Condition

// Share returns the part of a rate, in bytes per second, that a worker may use: the
// workers that have tasks share it equally. One that has none yet gets the part that it
// would have if all had tasks, because many may begin before they hear of each other.
func (c Crowd) Share(rate float64, name string) float64 {
	busy := 0
	for other, cond := range c {
		if other == name || cond == Sending || cond == Troubled || c[name] == Idle || c[name] == Ready {
			busy++
		}
	}
	return rate / float64(max(busy, 1))
}

// Epoch is how long the gate admits the same workers, and how long an answer of the service
// counts. A worker that cannot reach the service for reasons of its own must not be the only
// one that tries.
const Epoch = 30 * time.Second

// Admits reports whether a worker may take tasks. As long as at most one worker is in
// trouble, all may: its own retries wait. If more are, the service has trouble, and as
// many of the others may try it as there are workers that it answers, at least one. This
// includes workers that have no task yet. After an outage the number of workers that may
// send therefore doubles each time they hear of each other.
//
// The order in which workers are admitted depends on their names and the time only, so
// that all workers agree on it.
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
		if cond != Sending && cond != Ready && cmp.Or(cmp.Compare(rank(other, epoch), own), cmp.Compare(other, name)) < 0 {
			before++
		}
	}
	return before < max(1, answered)
}

// rank orders the workers within an epoch. It is the FNV-1a hash of both, which a beat of
// each worker computes for all.
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

// Interval returns the time between two beats of each worker: with each it publishes
// its condition, and reads those of the others, so that the cost of a beat grows with their number.
func Interval(workers int) time.Duration {
	return min(max(time.Duration(workers)*20*time.Millisecond, 2*time.Second), MaxInterval)
}

// TroubleRow is how many requests of a worker must fail in a row before it is in trouble,
// as for backoff.Gate.
const TroubleRow = 5
