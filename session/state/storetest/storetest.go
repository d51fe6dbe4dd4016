package storetest

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"gcsup/session/state"
)

// Place is a new, empty place for saved uploads, such as a directory, a database or a
// bucket. The Store must ignore entries that are not uploads.
type Place struct {
	// Open opens the place as a new process does.
	Open func() Process

	// Put stores data under id, as Save stores the result of [state.Encode]. It seals
	// the data if the Store does. No process holds the lock of id. Run uses it for
	// damaged uploads, and for those of a newer program.
	Put func(id string, data []byte) error

	// TTL is how long a lease lasts without renewal. It is required for a
	// [state.Leaser], and must otherwise be 0. With Run, a test of leases takes about
	// 25 TTL of real time.
	TTL time.Duration

	// OpenAhead opens the place as a new process whose clock is ahead of the clocks of
	// the other processes and the place. ahead may be negative.
	OpenAhead func(ahead time.Duration) Process

	// Without lists the features that the Store does not have. Each feature must be
	// either implemented or listed, because a wrapper could hide one by accident.
	Without []Feature
}

// Process is the handle of one process to a [Place].
type Process struct {
	// Store is the Store of a handle. Start does not set it.
	Store state.Store

	// Kill ends the process as SIGKILL does. The process releases nothing. Its locks end,
	// and its leases expire. Calls that are under way may have an effect or not. They
	// return when their context ends. Kill returns when the process is dead. It is called
	// at most once.
	Kill func()

	// Pause suspends the process as SIGSTOP does, or cuts its network, until resume is
	// called. Its requests do not reach the place meanwhile. Calls wait or fail, and
	// return when their context ends. Pause is required for a [state.Leaser].
	Pause func() (resume func())

	remote func(context.Context, call) (answer, error) // makes a call in a process of Start
}

// Feature is an optional part of a Store, or of a Place.
type Feature string

// The features that a Store or a Place need not have.
const (
	LockChecks Feature = "state.LockChecker" // an optional interface
	Quarantine Feature = "state.Quarantine"  // an optional interface
	Leases     Feature = "state.Leaser"      // required if machines share the Store
	Clocks     Feature = "Place.OpenAhead"   // only for a Leaser
)

// Run checks a Store. It calls open for each check, and open must return a new place
// each time. open can use t.Cleanup to remove the place.
func Run(t *testing.T, open func(t *testing.T) Place) {
	t.Helper()
	run(t, open, func(t *testing.T, f func(*testing.T)) { f(t) })
}

// RunVirtual is Run in bubbles of virtual time, see package [synctest]. Each call of
// open, and the check of its place, is in a bubble of its own. Leases of minutes then
// take no time. The Store must not use a network, or processes, outside of the bubble.
func RunVirtual(t *testing.T, open func(t *testing.T) Place) {
	t.Helper()
	run(t, open, synctest.Test)
}

func run(t *testing.T, open func(t *testing.T) Place, in func(*testing.T, func(*testing.T))) {
	t.Helper()
	var without []Feature
	in(t, func(t *testing.T) {
		s := newSubject(t, open(t))
		if without = s.place.Without; slices.Contains(without, Leases) {
			without = append(slices.Clip(without), Clocks)
		}
	})
	if t.Failed() {
		return
	}
	for _, c := range checks {
		if slices.Contains(without, c.needs) {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			in(t, func(t *testing.T) { newSubject(t, open(t)).check(c) })
		})
	}
}

// check is one part of the contract.
type check struct {
	name  string
	needs Feature // the check is for Stores that have it; "" means all
	run   func(*subject)
}

// check makes a check, and compares all uploads before and after it.
func (s *subject) check(c check) {
	s.observeAll()
	c.run(s)
	s.at = "at the end: "
	s.observeAll()
}

var checks = slices.Concat(tokenChecks, lockChecks, leaseChecks)

// complete checks that a process is complete, and has the features that the Place states.
func (s *subject) complete(p *process) {
	s.Helper()
	if p.do == nil || p.Kill == nil || s.place.Put == nil {
		s.Fatalf("Place.Put, Process.Store and Process.Kill are required")
	}
	got, err := s.call(s.Context(), p, call{Name: "features"})
	if err != nil {
		s.Fatalf("open the Store: %v", err)
	}
	features := got.Features
	leaser := slices.Contains(features, Leases)
	if s.place.OpenAhead != nil {
		features = append(features, Clocks)
	}
	all := []Feature{LockChecks, Quarantine, Leases, Clocks}
	for _, f := range all {
		if has := slices.Contains(features, f); has == slices.Contains(s.place.Without, f) && (leaser || f != Clocks) {
			s.Fatalf("Place.Without must have %q exactly if the Store does not have it, which is %t", f, !has)
		}
	}
	for _, f := range s.place.Without {
		if !slices.Contains(all, f) {
			s.Fatalf("Place.Without has %q, which is no Feature", f)
		}
	}
	switch {
	case leaser && (s.place.TTL <= 0 || p.Pause == nil):
		s.Fatalf("Place.TTL and Process.Pause are required for a state.Leaser")
	case !leaser && s.place.TTL != 0:
		s.Fatalf("Place.TTL is %v, but the Store is no state.Leaser", s.place.TTL)
	}
}
