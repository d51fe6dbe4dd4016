package storetest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"gcsup/session/state"
)

// lockChecks check the locks, and the state that a process leaves when it dies.
var lockChecks = []check{
	{"lock", "", script(`a lock; b !lock; a !lock; b !lock; b lock other; b unlock other; a save 1; b !lock; a save 2; b !lock; a unlock;
		b lock; a !lock; b save 3; b delete; a !lock; b unlock; a lock; b !lock; a unlock`)},
	{"holder of a lock", "", script("a lock; b !lock; a save 1; a wait; b !lock; a !lock; a unlock; b lock; a !lock")},
	{"unlock twice", "", script("a lock; a unlock; a unlock; b lock; a unlock; a !lock; b unlock; a lock; b unlock; b !lock; a unlock; b lock")},
	{"reads without the lock", "", script("a lock; a save 1; b !lock; a save 2; a unlock; a lock; a lock none; a unlock none; a unlock; b lock")},
	{"lock race", "", race("lock", "unlock")},
	{"lock check", LockChecks, lockCheck},
	{"crash between calls", "", crash("lock; save 1; save 2; delete; delete; save 3; unlock; lock; save 4; unlock; lock; delete; unlock")},
	{"crash during calls", "", crashDuringCalls},
	{"crash between calls of a lease", "", crash("acquire; begin; save 1; begin; save 2; release 3; acquire; delete; begin; save 4; release; acquire; delete; release")},
}

// race returns a check that lets goroutines of three processes compete for an exclusive right.
func race(get, release string) func(*subject) {
	return func(s *subject) {
		s.start("c", s.place.Open())
		s.steps("a lock; a unlock")
		var holders, successes atomic.Int64
		compete := func(name string) func() {
			p := s.processes[name]
			return func() {
				if _, err := s.call(s.Context(), p, call{Name: get, ID: "id"}); err != nil {
					s.means(err, state.ErrInUse, "the error of a race")
					return
				}
				if n := holders.Add(1); n != 1 {
					s.Errorf("%d hold the right to one upload", n)
					return
				}
				successes.Add(1)
				// Others try meanwhile.
				_, _ = s.call(s.Context(), p, call{Name: "load", ID: "id"})
				s.yield()
				holders.Add(-1)
				if _, err := s.call(s.Context(), p, call{Name: release, ID: "id"}); err != nil {
					// A process that did not run for a while has lost the lease.
					s.means(err, state.ErrInUse, "the error of the release after a race")
				}
			}
		}
		s.together([]func(){compete("a"), compete("b"), compete("c"), compete("a"), compete("b"), compete("c")})
		if successes.Load() == 0 {
			s.Errorf("no process of a race succeeded")
		}
		s.steps("b lock")
	}
}

// lockCheck checks that Locked reports the lock, and prevents no call of Lock.
func lockCheck(s *subject) {
	s.steps("a lock; a save 1; a unlock")
	a, b := s.processes["a"], s.processes["b"]
	lock := func() {
		for _, name := range []string{"lock", "unlock"} {
			if _, err := s.call(s.Context(), a, call{Name: name, ID: "id"}); err != nil {
				s.Errorf("%s while another process calls Locked: %v", name, err)
			}
		}
	}
	s.together([]func(){lock}, func() { _, _ = s.call(s.Context(), b, call{Name: "locked", ID: "id"}) })
	s.steps("b lock")
}

// crash returns a check that kills one process after each call of a script, and lets
// another one resume. The processes die together, so that their leases expire together.
func crash(script string) func(*subject) {
	return func(s *subject) {
		calls := strings.Split(script, ";")
		var names []string
		for n := range calls {
			name := fmt.Sprint("crash-", n)
			names = append(names, name)
			s.start(name, s.place.Open())
			for _, call := range calls[:n+1] {
				s.calls("%s %s %s", name, call, name)
			}
		}
		s.start("b", s.place.Open())
		s.observeAll()
		for _, name := range names {
			if s.upload(name).holder != nil {
				s.calls("b !lock %s", name)
			}
		}
		for _, name := range names {
			s.calls("%s kill", name)
		}
		s.observeAll()
		for n, name := range names {
			s.steps("b acquire %[1]s; b save %[1]s 9; b release %[1]s", name)
			if n%2 == 0 {
				s.steps("b lock %[1]s; b delete %[1]s; b unlock %[1]s", name)
			}
		}
	}
}

// crashDuringCalls checks that a process that dies during Save leaves the previous
// saved upload or the new one.
func crashDuringCalls(s *subject) {
	last := make(map[string]int)
	for round := range 6 {
		name := fmt.Sprint("crash-", round)
		s.start(name, s.place.Open())
		s.calls("%[1]s lock %[1]s", name)
		last[name] = s.dieSaving(s.processes[name], round+1)
	}
	next := s.start("b", s.place.Open())
	for name, n := range last {
		s.calls("b acquire %s", name)
		s.upload(name).saved = s.loadsOneOf(next, name, s.version(name, n), s.version(name, n+1))
	}
	for name := range last {
		s.observe(name) // under the lease
		s.steps("b save %[1]s 1; b release %[1]s", name)
	}
}

// dieSaving kills a process during a save, after at least the given number of saves. It
// returns the last version that was saved. The process may have saved the next one too.
func (s *subject) dieSaving(p *process, saves int) (last int) {
	s.Helper()
	ctx, cancel := context.WithCancel(s.Context())
	defer cancel()
	reached, reach := context.WithCancel(ctx)
	var saver sync.WaitGroup
	saver.Go(func() {
		defer reach()
		for last < saves+40 {
			if _, err := s.call(ctx, p, call{Name: "save", ID: p.name, Upload: s.version(p.name, last+1)}); err != nil {
				return
			}
			if last++; last == saves {
				reach()
			}
		}
	})
	<-reached.Done()
	s.calls("%s kill", p.name)
	s.upload(p.name).late = true
	cancel()
	saver.Wait()
	if last < saves {
		s.Fatalf("%d saves before the process died, want %d", last, saves)
	}
	return last
}
