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
	{"unlock twice", "", script("a lock; a unlock; a again; b lock; a again; a !lock; b unlock; a lock; b again; b !lock; a unlock; b lock")},
	{"reads without the lock", "", script("a lock; a save 1; b !lock; a save 2; a unlock; a lock; a lock none; a unlock none; a unlock; b lock")},
	{"lock race", "", lockRace},
	{"lock check", LockChecks, lockCheck},
	{"crash between calls", "", crash("lock; save 1; save 2; delete; delete; save 3; unlock; lock; save 4; unlock; lock; delete; unlock")},
	{"crash during calls", "", crashDuringCalls},
	{"crash between calls of a lease", "", crash("acquire; begin; save 1; begin; save 2; release 3; acquire; delete; begin; save 4; release; acquire; delete; release")},
}

// lockRace checks that of many calls of Lock at most one succeeds at a time.
func lockRace(s *subject) {
	race(s, func(ctx context.Context, p Process) (release func(), err error) { return p.Store.Lock(ctx, "id") })
}

// race lets goroutines of three processes compete for an exclusive right.
func race(s *subject, get func(context.Context, Process) (release func(), err error)) {
	s.Helper()
	s.steps("a lock; a unlock")
	var holders, successes atomic.Int64
	compete := func(p Process) func() {
		return func() {
			release, err := get(s.brief(patience), p)
			if err != nil {
				s.means(err, state.ErrInUse, "the error of a race")
				return
			}
			if n := holders.Add(1); n != 1 {
				s.Errorf("%d hold the right to one upload", n)
			}
			successes.Add(1)
			// Others try meanwhile.
			_, _ = p.Store.Load(s.brief(patience), "id")
			s.yield()
			holders.Add(-1)
			release()
		}
	}
	a, b, c := compete(s.processes["a"].Process), compete(s.processes["b"].Process), compete(s.place.Open())
	s.together([]func(){a, b, c, a, b, c})
	if successes.Load() == 0 {
		s.Errorf("no process of a race succeeded")
	}
	s.steps("b lock")
}

// lockCheck checks that Locked reports the lock, and prevents no call of Lock.
func lockCheck(s *subject) {
	s.steps("a lock; a save 1; a unlock")
	ctx, stop := context.WithCancel(s.Context())
	defer stop()
	var checker sync.WaitGroup
	defer checker.Wait()
	checker.Go(func() {
		for ; ctx.Err() == nil; s.yield() {
			_, _ = s.processes["b"].Store.(state.LockChecker).Locked(s.brief(patience), "id")
		}
	})
	for range 10 {
		s.calls("a lock; a unlock")
	}
	stop()
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
		next := s.start("b", s.place.Open())
		s.observeFrom(next)
		for _, name := range names {
			if s.upload(name).holder != nil {
				s.calls("b !lock %s", name)
			}
		}
		for _, name := range names {
			s.calls("%s kill", name)
		}
		s.observeFrom(next)
		for n, name := range names {
			s.steps("b acquire %[1]s; b save %[1]s 9; b release %[1]s", name)
			if n%2 == 0 {
				s.steps("b lock %[1]s; b delete %[1]s; b unlock %[1]s", name)
			}
		}
	}
}

// crashDuringCalls checks that a process that dies during Save leaves the previous
// Token or the new one.
func crashDuringCalls(s *subject) {
	left := make(map[string][]*state.Token)
	for round := range 6 {
		name := fmt.Sprint("crash-", round)
		s.start(name, s.place.Open())
		s.calls("%[1]s lock %[1]s", name)
		left[name] = s.dieSaving(s.processes[name], round+1)
	}
	s.start("b", s.place.Open())
	for name, tokens := range left {
		s.calls("b acquire %s", name)
		s.upload(name).saved = s.loadsOneOf(s.processes["b"], name, tokens...)
	}
	for name := range left {
		s.observe(s.processes["b"], s.upload(name)) // under the lease
		s.steps("b save %[1]s 1; b release %[1]s", name)
	}
}

// dieSaving kills a process during a save, after at least the given number of saves.
// It returns the Tokens that the process may leave.
func (s *subject) dieSaving(p *process, saves int) []*state.Token {
	s.Helper()
	var versions []*state.Token
	for n := range saves + 40 {
		versions = append(versions, version(p.name, n+1))
	}
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	saved := 0 // the number of calls that returned nil
	reached := make(chan struct{})
	var saver sync.WaitGroup
	saver.Go(func() {
		for n, v := range versions {
			if n == saves {
				close(reached)
			}
			if err := p.Store.Save(ctx, v); err != nil {
				if n < saves {
					s.Errorf("Save: %v", err)
					close(reached)
				}
				return
			}
			saved++
		}
	})
	<-reached
	s.calls("%s kill", p.name)
	cancel()
	saver.Wait()
	if saved == 0 {
		return []*state.Token{nil}
	}
	return versions[saved-1 : min(saved+1, len(versions))]
}
