package storetest

import (
	"context"
	"fmt"
	"sync"

	"gcsup/session/state"
)

// crashChecks check the state that a process leaves when it dies.
var crashChecks = []check{
	{"crash between calls", "", crashBetweenCalls},
	{"crash during calls", "", crashDuringCalls},
	{"crash between calls of a lease", "", crashUnderLease},
}

// crashStep is a step of a script of one process.
type crashStep struct {
	do   func(s *subject, c *crasher)
	held bool // the process holds the lock or lease after the step
	want int  // the version that is saved after the step; 0 means none
}

// crasher is a process that runs a script.
type crasher struct {
	Process
	id     string
	unlock func()
	lease  *held
}

func (c *crasher) version(n int) *state.Token {
	switch {
	case n == 0:
		return nil
	case n%2 == 0:
		return long(c.id, n)
	}
	return token(c.id, n)
}

// crashBetweenCalls lets a process die between any two of its calls, and checks that
// another one can continue.
func crashBetweenCalls(s *subject) {
	lock := func(s *subject, c *crasher) { c.unlock = s.lock(c.Process, c.id) }
	unlock := func(_ *subject, c *crasher) { c.unlock() }
	save := func(n int) func(*subject, *crasher) {
		return func(s *subject, c *crasher) { s.save(c.Process, c.version(n)) }
	}
	remove := func(s *subject, c *crasher) { s.remove(c.Process, c.id) }
	crash(s, []crashStep{
		{lock, true, 0}, {save(1), true, 1}, {save(2), true, 2}, {remove, true, 0}, {remove, true, 0}, {save(3), true, 3},
		{unlock, false, 3}, {lock, true, 3}, {save(4), true, 4}, {unlock, false, 4}, {lock, true, 4}, {remove, true, 0}, {unlock, false, 0},
	})
}

// crashUnderLease is crashBetweenCalls with the methods of a Lease.
func crashUnderLease(s *subject) {
	acquire := func(s *subject, c *crasher) { c.lease = s.acquire(c.Process, c.id) }
	save := func(n int) func(*subject, *crasher) {
		return func(s *subject, c *crasher) { c.lease.save(c.version(n)) }
	}
	begin := func(_ *subject, c *crasher) { c.lease.begin() }
	remove := func(s *subject, c *crasher) {
		if err := c.lease.Delete(s.brief(patience)); err != nil {
			s.Fatalf("Delete under a lease: %v", err)
		}
	}
	release := func(n int) func(*subject, *crasher) {
		return func(s *subject, c *crasher) { c.lease.release(c.version(n)) }
	}
	crash(s, []crashStep{
		{acquire, true, 0}, {begin, true, 0}, {save(1), true, 1}, {begin, true, 1}, {save(2), true, 2}, {release(3), false, 3},
		{acquire, true, 3}, {remove, true, 0}, {begin, true, 0}, {save(4), true, 4}, {release(0), false, 4},
		{acquire, true, 4}, {remove, true, 0}, {release(0), false, 0},
	})
}

// crash kills one process after each step of the script, and lets another one resume.
// The processes die together, so that their leases expire together.
func crash(s *subject, script []crashStep) {
	s.Helper()
	var crashers []*crasher
	for n := range script {
		c := &crasher{Process: s.start(), id: fmt.Sprint("crash-", n)}
		for _, step := range script[:n+1] {
			step.do(s, c)
		}
		crashers = append(crashers, c)
	}
	next := s.start()
	// Delete may have ended the lease: see deletedUnderLease.
	for n, c := range crashers {
		if step := script[n]; step.held && (step.want > 0 || s.place.TTL == 0) {
			s.locked(next, c.id)
		}
	}
	for _, c := range crashers {
		c.Kill()
	}
	for n, c := range crashers {
		step := script[n]
		want := c.version(step.want)
		s.saved(from(next, c.id), want) // without the lock
		var l *held
		if step.held {
			l = s.takeOver(next, c.id)
		} else {
			l = s.acquire(next, c.id)
		}
		s.saved(l.Load, want)
		l.save(token(c.id, 9))
		s.saved(from(next, c.id), token(c.id, 9))
		l.release(nil)
		if n%2 == 0 {
			unlock := s.lock(next, c.id)
			s.remove(next, c.id)
			unlock()
			s.saved(from(next, c.id), nil)
		}
	}
}

// crashDuringCalls checks that a process that dies during Save leaves the previous
// Token or the new one.
func crashDuringCalls(s *subject) {
	var crashers []*crasher
	var left [][]*state.Token
	for round := range 6 {
		c := &crasher{Process: s.start(), id: fmt.Sprint("crash-", round)}
		s.lock(c.Process, c.id)
		crashers, left = append(crashers, c), append(left, s.dieSaving(c, round+1))
	}
	next := s.start()
	for i, c := range crashers {
		l := s.takeOver(next, c.id)
		s.saved(l.Load, left[i]...)
		l.release(nil)
	}
}

// dieSaving kills a process during a save, after at least the given number of saves.
// It returns the Tokens that the process may leave.
func (s *subject) dieSaving(c *crasher, saves int) []*state.Token {
	s.Helper()
	var versions []*state.Token
	for n := range saves + 40 {
		versions = append(versions, c.version(n+1))
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
			if err := c.Store.Save(ctx, v); err != nil {
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
	c.Kill()
	cancel()
	saver.Wait()
	if saved == 0 {
		return []*state.Token{nil}
	}
	return versions[saved-1 : min(saved+1, len(versions))]
}
