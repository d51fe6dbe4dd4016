package storetest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"gcsup/session/state"
)

// lockChecks check the locks.
var lockChecks = []check{
	{"lock", "", lock},
	{"holder of a lock", "", lockHolder},
	{"unlock twice", "", unlockTwice},
	{"reads without the lock", "", readsWithoutLock},
	{"lock race", "", lockRace},
	{"lock check", LockChecks, lockCheck},
}

// lock checks that a lock excludes other processes and goroutines until unlock.
func lock(s *subject) {
	a, b := s.start(), s.start()
	unlock := s.lock(a, "id")
	for range 2 {
		s.locked(b, "id")
		s.locked(a, "id") // in the same process
	}
	s.lock(b, "other")()
	s.save(a, token("id", 1))
	s.locked(b, "id")
	s.save(a, token("id", 2))
	s.locked(b, "id")
	unlock()
	unlock = s.lock(b, "id")
	s.saved(from(b, "id"), token("id", 2))
	s.locked(a, "id")
	s.save(b, token("id", 3))
	s.remove(b, "id")
	if s.place.TTL == 0 {
		s.locked(a, "id") // Delete does not unlock. It may end a lease: deletedUnderLease
	}
	unlock()
	unlock = s.lock(a, "id") // of an upload that is not saved
	s.locked(b, "id")
	unlock()
	s.list(b)
}

// lockHolder checks that the HeldError of a lock describes its holder: it does not change
// while the lock is held, and a later holder has a later Since. A Store that does not know
// the holder has zero fields.
func lockHolder(s *subject) {
	a, b := s.start(), s.start()
	unlock := s.lock(a, "id")
	first := s.locked(b, "id")
	if first.PID < 0 || first.Holder() == "" {
		s.Errorf("HeldError has the PID %d and the holder %q", first.PID, first.Holder())
	}
	s.save(a, token("id", 1))
	s.yield()
	s.sameHolder(first, s.locked(b, "id"))
	s.sameHolder(first, s.locked(a, "id"))
	unlock()
	s.lock(b, "id")
	if second := s.locked(a, "id"); second.Since.Before(first.Since) || second.Since.IsZero() != first.Since.IsZero() {
		s.Errorf("HeldError.Since is %v, and that of an earlier holder %v", second.Since, first.Since)
	}
}

// unlockTwice checks that only the first call of unlock has an effect, in any
// goroutine.
func unlockTwice(s *subject) {
	a, b := s.start(), s.start()
	first := s.lock(a, "id")
	first()
	first()
	second := s.lock(b, "id")
	first()
	s.locked(a, "id")
	second()
	third := s.lock(a, "id")
	first()
	second()
	s.locked(b, "id")
	var other sync.WaitGroup
	other.Go(third) // not in the goroutine that locked it
	other.Wait()
	s.lock(b, "id")
}

// readsWithoutLock checks that Load and List do not change or lock anything.
func readsWithoutLock(s *subject) {
	a, b := s.start(), s.start()
	unlock := s.lock(a, "id")
	s.save(a, token("id", 1))
	read := func(want *state.Token) {
		s.Helper()
		for range 3 {
			s.saved(from(b, "id"), want)
			s.saved(from(b, "none"), nil)
			s.list(b, "id")
		}
	}
	read(token("id", 1))
	s.locked(b, "id")
	s.save(a, token("id", 2))
	read(token("id", 2))
	unlock()
	read(token("id", 2))
	unlock = s.lock(a, "id")
	s.lock(a, "none")()
	s.saved(from(a, "id"), token("id", 2))
	unlock()
	s.list(a, "id")
}

// lockRace checks that of many calls of Lock at most one succeeds at a time.
func lockRace(s *subject) {
	race(s, func(ctx context.Context, p Process) (release func(), err error) { return p.Store.Lock(ctx, "id") })
}

// race lets goroutines of three processes compete for an exclusive right.
func race(s *subject, get func(context.Context, Process) (release func(), err error)) {
	s.Helper()
	processes := []Process{s.start(), s.start(), s.start()}
	s.lock(processes[0], "id")()
	var holders, successes atomic.Int64
	var all sync.WaitGroup
	for i := range 6 {
		all.Go(func() {
			for range 6 {
				release, err := get(s.brief(patience), processes[i%3])
				if err != nil {
					if !errors.Is(err, state.ErrInUse) {
						s.Errorf("the error of a race is %v, want state.ErrInUse", err)
					}
					continue
				}
				if n := holders.Add(1); n != 1 {
					s.Errorf("%d hold the right to one upload", n)
				}
				successes.Add(1)
				// Others try meanwhile.
				_, _ = processes[i%3].Store.Load(s.brief(patience), "id")
				s.yield()
				holders.Add(-1)
				release()
			}
		})
	}
	all.Wait()
	if successes.Load() == 0 {
		s.Errorf("no process of a race succeeded")
	}
	s.lock(processes[1], "id")
}

// lockCheck checks that Locked reports the lock, and changes nothing.
func lockCheck(s *subject) {
	a, b := s.start(), s.start()
	want := func(id string, want bool) {
		s.Helper()
		for _, p := range []Process{a, b} {
			got, err := p.Store.(state.LockChecker).Locked(s.brief(patience), id)
			if err != nil || got != want {
				s.Errorf("Locked of %s returned %v, %v; want %v", id, got, err, want)
			}
		}
	}
	want("id", false)
	s.list(a)
	unlock := s.lock(a, "id")
	want("id", true)
	want("other", false)
	s.save(a, token("id", 1))
	want("id", true)
	unlock()
	want("id", false)
	s.saved(from(b, "id"), token("id", 1))
	// It does not prevent Lock.
	ctx, stop := context.WithCancel(s.Context())
	defer stop()
	var checker sync.WaitGroup
	checker.Go(func() {
		for ; ctx.Err() == nil; s.yield() {
			_, _ = b.Store.(state.LockChecker).Locked(s.brief(patience), "id")
		}
	})
	for range 10 {
		s.lock(a, "id")()
	}
	stop()
	checker.Wait()
	want("id", false)
	s.lock(b, "id")
	want("id", true)
}
