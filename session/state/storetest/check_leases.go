package storetest

import (
	"context"
	"errors"
	"fmt"
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
	{"save without a lease", Leases, script(`b !save 7; b !delete; a acquire; a save 1; b !save 7; b !delete; a store-save 2; a release;
		b !save 7; b !delete; a !save 7; a !delete`)},
	{"release", Leases, script("a acquire; a release; b acquire; b release 1; a acquire; a save 2; a release 3; b acquire; b save 4; b release; a acquire; a release")},
	{"release fails", Leases, releaseFails},
	{"concurrent calls of a lease", Leases, concurrentLease},
	{"lease of a clock ahead", Clocks, clocks(10)},
	{"lease of a clock behind", Clocks, clocks(-10)},
}

// lease checks the methods of a lease.
func lease(s *subject) {
	s.steps("a acquire; b !acquire; a !acquire; b !lock; a save 1; b !acquire; a save 2; b !acquire; a save 3; b !acquire")
	b, l := s.processes["b"], s.processes["a"].leases["id"]
	if err := l.Context().Err(); err != nil {
		s.Errorf("Context ended while the lease is held: %v", err)
	}
	if d := l.SaveInterval(); d < 0 || d >= s.place.TTL {
		s.Errorf("SaveInterval returned %v, with a TTL of %v", d, s.place.TTL)
	}
	if err := l.Save(s.brief(patience), version("none", 1)); err == nil {
		s.Errorf("Save of another upload under the lease succeeded")
	}
	s.observe(b, s.upload("none"))

	type key struct{}
	ctx, cancel := context.WithCancel(context.WithValue(s.Context(), key{}, "value"))
	request, end, err := l.Begin(ctx)
	s.succeeded(err)
	if request.Err() != nil || request.Value(key{}) != "value" {
		s.Errorf("Begin returned a context that is done, or is not one of its argument")
	}
	cancel()
	if !isDone(request, patience) {
		s.Errorf("the context of a request does not end with that of Begin")
	}
	end()
	_, err = l.Load(ended())
	s.means(err, nil, "Load of a lease with a context that is done")
	s.calls("a ~begin; a ~save 1; a ~delete")
	s.calls("a begin; a release")
	if l.Context().Err() != nil {
		s.Errorf("Context ended with Release")
	}
	s.calls("b lock; b unlock; b ~acquire; a acquire") // a failed Acquire holds nothing
}

// leaseRace checks that of many calls of Acquire at most one succeeds at a time.
func leaseRace(s *subject) {
	race(s, func(ctx context.Context, p Process) (func(), error) {
		l, err := state.Acquire(ctx, p.Store, "id")
		if err != nil {
			return nil, err
		}
		return func() {
			// A process that did not run for a while has lost the lease.
			if err := l.Release(s.brief(patience), nil); err != nil && !errors.Is(err, state.ErrInUse) {
				s.Errorf("Release: %v", err)
			}
		}, nil
	})
}

// renewed checks that a lease does not expire while its holder runs.
func renewed(s *subject) {
	s.steps("a acquire; a save 1; a lock locked; a begin")
	l, u := s.processes["a"].leases["id"], s.upload("id")
	renewals := map[int64]bool{}
	for range 3 * 8 {
		s.pause(2)
		s.calls("b !acquire; b !lock locked")
		renewals[u.last.Renewal] = true
	}
	if len(renewals) < 2 {
		s.Errorf("HeldError.Renewal did not change while the lease was renewed")
	}
	if u.request.Err() != nil || l.Context().Err() != nil {
		s.Errorf("a context of the lease ended while it was renewed: %v", context.Cause(u.request))
	}
	s.steps("a begin; a save locked 1; a save 3; a release; a unlock locked; b acquire; b release")
}

// ranOut checks that requests end when the lease expires, and that it is renewed if
// no other process acquired it.
func ranOut(s *subject) {
	s.steps("a acquire; a save 1; a begin; a pause")
	u := s.upload("id")
	l := s.processes["a"].leases["id"]
	if !isDone(u.request, s.limit()) {
		s.Errorf("the context of a request did not end when the lease expired")
	}
	s.pause(32)
	if s.tryBegin(l, s.place.TTL/8) == nil {
		s.Errorf("Begin succeeded, but the lease expired and cannot be renewed")
	}
	if l.Context().Err() != nil {
		s.Errorf("Context ended, but no other process acquired the lease")
	}
	s.calls("a resume; a begin; b !acquire")
	if l.Context().Err() != nil {
		s.Errorf("the lease was renewed, but its Context ended")
	}
	s.steps("a save 2; a release")
}

// losses are the calls of a process after another one acquired its lease.
var losses = []string{"begin", "save 3", "delete", "store-save 3", "store-delete", "release 3"}

// taken checks that every call of a holder fails after its lease has expired and
// another process has acquired it. Each loss is the next call of a holder; the last
// holder makes none.
func taken(s *subject) {
	id := func(i int) string { return fmt.Sprint("lost-", i) }
	a, b := s.processes["a"], s.processes["b"]
	for i := range len(losses) + 1 {
		s.steps("a acquire %[1]s; a save %[1]s 1; a begin %[1]s", id(i))
	}
	s.calls("a pause")
	for i := range len(losses) + 1 {
		s.calls("b !acquire %s", id(i))
	}
	for i := range len(losses) + 1 {
		u := s.upload(id(i))
		request := u.request
		s.calls("b acquire %s", id(i))
		if request.Err() == nil {
			s.Errorf("a process acquired the lease while a request of the holder could be sent")
		}
		if s.tryBegin(a.leases[id(i)], s.place.TTL/64) == nil {
			s.Errorf("a request of the holder began after another process acquired the lease")
		}
		s.observe(b, u)
		s.calls("b save %s 5", id(i))
	}
	s.calls("a resume")
	for i := range len(losses) + 1 {
		l := a.leases[id(i)]
		if i < len(losses) {
			s.steps("a !%s %s", losses[i], id(i))
		}
		if l.released {
			continue
		}
		if !isDone(l.Context(), s.limit()) {
			s.Errorf("Context does not end, but another process acquired the lease")
		} else {
			s.means(context.Cause(l.Context()), state.ErrInUse, "the cause of Context")
		}
		for _, loss := range losses {
			s.calls("a !%s %s", loss, id(i))
		}
	}
	for i := range len(losses) + 1 {
		s.steps("b begin %s", id(i))
		if l := b.leases[id(i)]; l.Context().Err() != nil {
			s.Errorf("the new holder lost its lease: %v", context.Cause(l.Context()))
		}
		s.steps("b save %[1]s 7; b release %[1]s", id(i))
	}
	s.steps("a acquire %s", id(0))
}

// holderDead checks that the lease of a dead process expires, but not before the last
// request of that process must have ended by its own clock. HeldError shows that the
// lease is not renewed.
func holderDead(s *subject) {
	s.steps("a acquire; a save 1; a lock locked; a begin")
	u := s.upload("id")
	request := u.request
	s.calls("a kill; b !acquire")
	left := u.last
	s.pause(1)
	s.calls("b !acquire")
	if e := u.last; e.Renewal != left.Renewal || e.Left > left.Left {
		s.Errorf("HeldError of a dead holder changed from %+v to %+v", *left, *e)
	}
	s.calls("b acquire")
	if request.Err() == nil {
		s.Errorf("a process acquired the lease of a dead holder, whose last request may still be under way")
	}
	s.steps("b begin; b acquire locked")
}

// fences checks that fencing numbers grow, even if the upload was deleted meanwhile: see
// acquire and kept.
func fences(s *subject) {
	for range 3 {
		s.steps("a acquire; a release; b acquire; b save 1; b release 5; a acquire; a begin; a save 3; a release; b acquire; b delete; b release")
	}
}

// deletedUnderLease checks that after Delete under a lease, the lease is held until
// Release, or lost finally when another process acquires it.
func deletedUnderLease(s *subject) {
	for n, again := range []string{"a save %[1]s 2; b !acquire %[1]s; a delete %[1]s; a release %[1]s", "a begin %[1]s; b !acquire %[1]s; a release %[1]s", "a release %[1]s"} {
		id := fmt.Sprint("id-", n)
		s.steps("a acquire %[1]s; a save %[1]s 1; a delete %[1]s", id)
		if err := s.try(s.brief(patience), step{process: "b", call: "acquire", id: id}); err == nil { // the lease ended with Delete
			s.steps("a !begin %[1]s; a !save %[1]s 3; b release %[1]s; a acquire %[1]s", id)
		} else {
			s.means(err, state.ErrInUse, "Acquire of a lease that is held")
		}
		s.steps(again, id)
		s.steps("b acquire %[1]s; b release %[1]s", id)
	}
}

// releaseFails checks that a lease expires if it cannot be released.
func releaseFails(s *subject) {
	s.steps("a acquire; a save 1; a pause")
	l := s.processes["a"].leases["id"]
	l.released = true
	if err := l.Release(s.brief(s.place.TTL/8), version("id", 2)); err == nil || errors.Is(err, state.ErrInUse) {
		s.Errorf("Release that does not reach the place returned %v, want an error, and not state.ErrInUse", err)
	}
	s.steps("b acquire; b save 3")
	s.calls("a resume")
	s.pause(16)
	s.steps("b begin; b release")
}

// concurrentLease checks that the methods of a lease may be called concurrently.
func concurrentLease(s *subject) {
	s.steps("a acquire; a save 1")
	l, t := s.processes["a"].leases["id"], version("id", 1)
	use := func() {
		_, end, err := l.Begin(s.brief(patience))
		if err != nil {
			s.Errorf("Begin: %v", err)
			return
		}
		defer end()
		if err := l.Save(s.brief(patience), t); err != nil {
			s.Errorf("Save: %v", err)
		}
		if got, err := l.Load(s.brief(patience)); err != nil || !s.same(got, t) {
			s.Errorf("Load: %v", err)
		}
		if l.Fence() <= 0 || l.Context().Err() != nil {
			s.Errorf("the lease is lost")
		}
	}
	s.together([]func(){use, use, use, use})
	s.steps("a release")
}

// clocks returns a check of a lease whose holder has a clock that is ahead of that of the
// place, by a number of TTLs, and of the other process, and vice versa.
func clocks(ttls time.Duration) func(*subject) {
	return func(s *subject) {
		s.skewed = true
		for _, check := range []func(*subject){renewed, taken} {
			s.start("a", s.place.OpenAhead(ttls*s.place.TTL))
			s.start("b", s.place.OpenAhead(-ttls*s.place.TTL))
			check(s)
		}
	}
}
