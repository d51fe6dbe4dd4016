package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"gcsup/session/state"
)

// leaseChecks check a state.Leaser.
var leaseChecks = []check{
	{"lease", Leases, lease},
	{"lease race", Leases, leaseRace},
	{"lease is renewed", Leases, renewed},
	{"lease runs out and is renewed", Leases, ranOut},
	{"lease runs out and is acquired", Leases, taken},
	{"lease of a dead process", Leases, holderDead},
	{"fencing numbers", Leases, fences},
	{"delete under a lease", Leases, deletedUnderLease},
	{"save without a lease", Leases, withoutLease},
	{"release", Leases, release},
	{"release fails", Leases, releaseFails},
	{"concurrent calls of a lease", Leases, concurrentLease},
	{"lease of a clock ahead", Clocks, func(s *subject) { clocks(s, 10*s.place.TTL) }},
	{"lease of a clock behind", Clocks, func(s *subject) { clocks(s, -10*s.place.TTL) }},
}

// lease checks the methods of a lease.
func lease(s *subject) {
	a, b := s.start(), s.start()
	l := s.acquire(a, "id")
	s.saved(l.Load, nil)
	s.refused(b, "id")
	s.refused(a, "id") // in the same process
	s.locked(b, "id")
	s.list(b)
	for n := range 3 {
		want := token("id", n)
		l.save(want)
		s.saved(l.Load, want)
		s.saved(from(b, "id"), want)
		s.refused(b, "id")
	}
	if err := l.Context().Err(); err != nil {
		s.Errorf("Context ended while the lease is held: %v", err)
	}
	if l.Fence() <= 0 {
		s.Errorf("Fence returned %d, want a positive number", l.Fence())
	}
	if d := l.SaveInterval(); d < 0 || d >= s.place.TTL {
		s.Errorf("SaveInterval returned %v, with a TTL of %v", d, s.place.TTL)
	}
	if err := l.Save(s.brief(patience), token("other", 1)); err == nil {
		s.Errorf("Save of another upload under the lease succeeded")
	}
	s.saved(from(b, "other"), nil)

	type key struct{}
	ctx, cancel := context.WithCancel(context.WithValue(s.Context(), key{}, "value"))
	request, end, err := l.Begin(ctx)
	if err != nil {
		s.Fatalf("Begin: %v", err)
	}
	if request.Err() != nil || request.Value(key{}) != "value" {
		s.Errorf("Begin returned a context that is done, or is not one of its argument")
	}
	cancel()
	if !isDone(request, patience) {
		s.Errorf("the context of a request does not end with that of Begin")
	}
	end()
	if _, end, err := l.Begin(ended()); err == nil {
		end() // ends the context
	} else {
		s.interrupted(err, "Begin")
	}
	_, err = l.Lease.Load(ended())
	s.interrupted(err, "Load of a lease")
	s.interrupted(l.Save(ended(), token("id", 1)), "Save of a lease")
	s.interrupted(l.Delete(ended()), "Delete of a lease")
	l.begin()
	l.release(nil)
	if l.Context().Err() != nil {
		s.Errorf("Context ended with Release")
	}
	s.lock(b, "id")()
	if l, err := state.Acquire(ended(), b.Store, "id"); err == nil {
		s.hold(l).release(nil)
	} else {
		s.interrupted(err, "Acquire")
	}
	s.acquire(a, "id") // a failed Acquire holds nothing
}

// isDone waits until ctx is done, for at most d.
func isDone(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return true
	case <-timer.C:
		return false
	}
}

// leaseRace checks that of many calls of Acquire at most one succeeds at a time.
func leaseRace(s *subject) {
	race(s, func(ctx context.Context, p Process) (func(), error) {
		l, err := state.Acquire(ctx, p.Store, "id")
		if err != nil {
			return nil, err
		}
		h := s.hold(l)
		return func() {
			h.released = true
			// A process that did not run for a while has lost the lease.
			if err := h.Release(s.brief(patience), nil); err != nil && !errors.Is(err, state.ErrInUse) {
				s.Errorf("Release: %v", err)
			}
		}, nil
	})
}

// renewed checks that a lease does not expire while its holder runs.
func renewed(s *subject) { keptAlive(s, s.start(), s.start()) }

func keptAlive(s *subject, a, b Process) {
	s.Helper()
	l := s.acquire(a, "id")
	l.save(token("id", 1))
	unlock := s.lock(a, "locked")
	request := l.begin()
	renewals := map[int64]bool{}
	holder, locker := s.refused(b, "id"), s.locked(b, "locked")
	for range 3 * 8 {
		s.pause(2)
		e := s.refused(b, "id")
		renewals[e.Renewal] = true
		s.sameHolder(holder, e)
		s.sameHolder(locker, s.locked(b, "locked"))
	}
	if len(renewals) < 2 {
		s.Errorf("HeldError.Renewal did not change while the lease was renewed")
	}
	if request.Err() != nil || l.Context().Err() != nil {
		s.Errorf("a context of the lease ended while it was renewed: %v", context.Cause(request))
	}
	l.begin()
	s.save(a, token("locked", 1))
	s.saved(l.Load, token("id", 1))
	l.save(token("id", 2))
	l.release(nil)
	unlock()
	l = s.acquire(b, "id")
	s.saved(l.Load, token("id", 2))
	l.release(nil)
}

// ranOut checks that requests end when the lease expires, and that it is renewed if
// no other process acquired it.
func ranOut(s *subject) {
	a, b := s.start(), s.start()
	l := s.acquire(a, "id")
	l.save(token("id", 1))
	fence, request := l.Fence(), l.begin()
	resume := a.Pause()
	if !isDone(request, s.limit()) {
		s.Errorf("the context of a request did not end when the lease expired")
	}
	s.pause(32)
	if l.mayBegin(s.place.TTL / 8) {
		s.Errorf("Begin succeeded, but the lease expired and cannot be renewed")
	}
	if l.Context().Err() != nil {
		s.Errorf("Context ended, but no other process acquired the lease")
	}
	resume()
	l.begin()
	s.refused(b, "id")
	if l.Fence() != fence || l.Context().Err() != nil {
		s.Errorf("the lease was renewed, but it has another fencing number, or its Context ended")
	}
	s.saved(l.Load, token("id", 1))
	l.save(token("id", 2))
	l.release(nil)
	s.saved(from(b, "id"), token("id", 2))
}

// loss is a call that a process makes after another one acquired its lease.
type loss struct {
	name string
	call func(s *subject, p Process, l *held, t *state.Token) error
}

var losses = []loss{
	{"Begin", func(s *subject, _ Process, l *held, _ *state.Token) error {
		_, end, err := l.Begin(s.brief(patience))
		if err == nil {
			end()
		}
		return err
	}},
	{"Lease.Save", func(s *subject, _ Process, l *held, t *state.Token) error { return l.Save(s.brief(patience), t) }},
	{"Lease.Delete", func(s *subject, _ Process, l *held, _ *state.Token) error { return l.Delete(s.brief(patience)) }},
	{"Save", func(s *subject, p Process, _ *held, t *state.Token) error {
		return p.Store.Save(s.brief(patience), t)
	}},
	{"Delete", func(s *subject, p Process, _ *held, t *state.Token) error {
		return p.Store.Delete(s.brief(patience), t.ID)
	}},
	{"Release", func(s *subject, _ Process, l *held, t *state.Token) error {
		l.released = true
		return l.Release(s.brief(patience), t)
	}},
	{"nothing", nil},
}

// taken checks that every call of a holder fails after its lease has expired and
// another process has acquired it.
func taken(s *subject) { lostTo(s, s.start(), s.start()) }

// lostTo makes b acquire leases of a. Each loss is the next call of a.
func lostTo(s *subject, a, b Process) {
	s.Helper()
	id := func(i int) string { return fmt.Sprint("id-", i) }
	var before, after []*held
	var requests []context.Context
	for i := range losses {
		l := s.acquire(a, id(i))
		l.save(token(id(i), 1))
		before, requests = append(before, l), append(requests, l.begin())
	}
	resume := a.Pause()
	for i := range losses {
		s.refused(b, id(i))
	}
	for i, l := range before {
		next := s.takeOver(b, id(i))
		after = append(after, next)
		if requests[i].Err() == nil {
			s.Errorf("a process acquired the lease while a request of the holder could be sent")
		}
		if l.mayBegin(s.place.TTL / 64) {
			s.Errorf("a request of the holder began after another process acquired the lease")
		}
		if next.Fence() <= l.Fence() {
			s.Errorf("the fencing number is %d, after one of %d", next.Fence(), l.Fence())
		}
		s.saved(next.Load, token(id(i), 1))
		next.save(token(id(i), 2))
	}
	resume()
	for i, loss := range losses {
		l := before[i]
		if loss.call != nil {
			s.inUse(loss.call(s, a, l, token(id(i), 3)), "%s under a lease that another process acquired", loss.name)
		}
		s.saved(from(b, id(i)), token(id(i), 2))
		if l.released {
			continue
		}
		if !isDone(l.Context(), s.limit()) {
			s.Errorf("Context does not end after %s, but another process acquired the lease", loss.name)
		} else {
			s.inUse(context.Cause(l.Context()), "the cause of Context")
		}
		for _, loss := range losses {
			if loss.call != nil {
				s.inUse(loss.call(s, a, l, token(id(i), 3)), "%s after Context ended", loss.name)
			}
		}
	}
	for i, l := range after {
		s.saved(l.Load, token(id(i), 2))
		l.begin()
		if l.Context().Err() != nil {
			s.Errorf("the new holder lost its lease: %v", context.Cause(l.Context()))
		}
		l.save(token(id(i), 4))
		l.release(nil)
	}
	s.saved(s.acquire(a, id(0)).Load, token(id(0), 4))
}

// holderDead checks that the lease of a dead process expires, but not before the last
// request of that process must have ended by its own clock. HeldError shows that the
// lease is not renewed.
func holderDead(s *subject) {
	a, b := s.start(), s.start()
	l := s.acquire(a, "id")
	l.save(token("id", 1))
	s.lock(a, "locked")
	request := l.begin()
	fence := l.Fence()
	a.Kill()
	killed := time.Now()
	left := s.refused(b, "id")
	s.pause(1)
	if e := s.refused(b, "id"); e.Renewal != left.Renewal || e.Left > left.Left {
		s.Errorf("HeldError of a dead holder changed from %+v to %+v", *left, *e)
	}
	next := s.takeOver(b, "id")
	if request.Err() == nil {
		s.Errorf("a process acquired the lease %v after the death of the holder, with a TTL of %v", time.Since(killed), s.place.TTL)
	}
	if next.Fence() <= fence {
		s.Errorf("the fencing number is %d, after one of %d", next.Fence(), fence)
	}
	s.saved(next.Load, token("id", 1))
	next.begin()
	s.takeOver(b, "locked")
}

// fences checks that fencing numbers grow, even if the upload was deleted meanwhile.
func fences(s *subject) {
	processes := []Process{s.start(), s.start()}
	last := int64(0)
	for i := range 12 {
		l := s.acquire(processes[i%2], "id")
		if l.Fence() <= last {
			s.Errorf("lease %d has the fencing number %d, after one of %d", i+1, l.Fence(), last)
		}
		last = l.Fence()
		switch i % 4 {
		case 0:
			l.release(nil)
		case 1:
			l.save(token("id", i))
			l.release(token("id", i+1))
		case 2:
			l.begin()
			l.save(token("id", i))
			if l.Fence() != last {
				s.Errorf("the fencing number changed from %d to %d", last, l.Fence())
			}
			l.release(nil)
		default:
			if err := l.Delete(s.brief(patience)); err != nil {
				s.Errorf("Delete: %v", err)
			}
			l.release(nil)
		}
	}
}

// deletedUnderLease checks that after Delete under a lease, the lease is held until
// Release, or lost finally when another process acquires it.
func deletedUnderLease(s *subject) {
	a, b := s.start(), s.start()
	for n, again := range []string{"Save", "Begin", "Release"} {
		id := fmt.Sprint("id-", n)
		l := s.acquire(a, id)
		l.save(token(id, 1))
		if err := l.Delete(s.brief(patience)); err != nil {
			s.Fatalf("Delete under a lease: %v", err)
		}
		s.saved(l.Load, nil)
		s.list(b)
		other, err := state.Acquire(s.brief(patience), b.Store, id)
		if err == nil {
			// The lease ended with Delete.
			other := s.hold(other)
			_, end, err := l.Begin(s.brief(patience))
			if err == nil {
				end()
			}
			s.inUse(err, "Begin under a lease that ended with Delete, and that another process acquired")
			s.inUse(l.Save(s.brief(patience), token(id, 3)), "Save under such a lease")
			s.saved(from(b, id), nil)
			other.release(nil)
			l = s.acquire(a, id)
		} else {
			s.inUse(err, "Acquire of a lease that is held")
		}
		switch again {
		case "Save":
			l.save(token(id, 2))
			s.refused(b, id)
			s.saved(from(b, id), token(id, 2))
			if err := l.Delete(s.brief(patience)); err != nil {
				s.Errorf("Delete under a lease: %v", err)
			}
		case "Begin":
			l.begin()
			s.refused(b, id)
		}
		l.release(nil)
		s.list(b)
		s.acquire(b, id).release(nil)
	}
}

// withoutLease checks that Save and Delete of a Leaser fail if this process does not
// hold the lease.
func withoutLease(s *subject) {
	a, b := s.start(), s.start()
	change := func() {
		s.Helper()
		s.inUse(b.Store.Save(s.brief(patience), token("id", 7)), "Save without a lease")
		s.inUse(b.Store.Delete(s.brief(patience), "id"), "Delete without a lease")
	}
	change()
	s.list(a)
	l := s.acquire(a, "id")
	l.save(token("id", 1))
	change()
	s.save(a, token("id", 2)) // with it
	s.saved(l.Load, token("id", 2))
	l.release(nil)
	change()
	s.inUse(a.Store.Save(s.brief(patience), token("id", 7)), "Save after Release")
	s.saved(from(b, "id"), token("id", 2))
}

// release checks that Release saves the last Token, and frees the upload at once.
func release(s *subject) {
	a, b := s.start(), s.start()
	l := s.acquire(a, "id")
	l.release(nil)
	s.list(b)
	l = s.acquire(b, "id")
	s.saved(l.Load, nil)
	l.release(token("id", 1))
	l = s.acquire(a, "id")
	s.saved(l.Load, token("id", 1))
	l.save(token("id", 2))
	l.release(token("id", 3))
	s.saved(from(b, "id"), token("id", 3))
	l = s.acquire(b, "id")
	l.save(token("id", 4))
	l.release(nil)
	l = s.acquire(a, "id")
	s.saved(l.Load, token("id", 4))
	l.release(nil)
	s.list(a, "id")
}

// releaseFails checks that a lease expires if it cannot be released.
func releaseFails(s *subject) {
	a, b := s.start(), s.start()
	l := s.acquire(a, "id")
	l.save(token("id", 1))
	resume := a.Pause()
	l.released = true
	if err := l.Release(s.brief(s.place.TTL/8), token("id", 2)); err == nil || errors.Is(err, state.ErrInUse) {
		s.Errorf("Release that does not reach the place returned %v, want an error, and not state.ErrInUse", err)
	}
	next := s.takeOver(b, "id")
	s.saved(next.Load, token("id", 1))
	next.save(token("id", 3))
	resume()
	s.pause(16)
	s.saved(next.Load, token("id", 3))
	next.begin()
	next.release(nil)
	s.saved(from(b, "id"), token("id", 3))
}

// concurrentLease checks that the methods of a lease may be called concurrently.
func concurrentLease(s *subject) {
	a := s.start()
	l := s.acquire(a, "id")
	t := token("id", 1)
	l.save(t)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 6 {
				_, end, err := l.Begin(s.brief(patience))
				if err != nil {
					s.Errorf("Begin: %v", err)
					return
				}
				if err := l.Save(s.brief(patience), t); err != nil {
					s.Errorf("Save: %v", err)
				}
				if got, err := l.Load(s.brief(patience)); err != nil || !s.same(got, t) {
					s.Errorf("Load: %v", err)
				}
				if l.Fence() <= 0 || l.Context().Err() != nil {
					s.Errorf("the lease is lost")
				}
				end()
			}
		})
	}
	all.Wait()
	l.release(nil)
}

// clocks checks a lease whose holder has a clock that is ahead of that of the place and
// of the other process, and vice versa.
func clocks(s *subject, ahead time.Duration) {
	keptAlive(s, s.startAhead(ahead), s.startAhead(-ahead))
	lostTo(s, s.startAhead(ahead), s.startAhead(-ahead))
}
