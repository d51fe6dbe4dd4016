package storetest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"gcsup/session/state"
)

// leaseChecks check a state.Leaser.
var leaseChecks = []check{
	{"lease", Leases, lease},
	{"lease race", Leases, race("acquire", "release")},
	{"lease is renewed", Leases, renewed},
	// Requests end when a lease expires. It is renewed if no other process acquired it.
	{"lease runs out and is renewed", Leases, script(`a acquire; a save 1; a begin; a pause; a expired; a wait 32; a ?begin; a held;
		a resume; a begin; b !acquire; a held; a save 2; a release`)},
	{"lease runs out and is acquired", Leases, taken},
	// The call that acquired the lease was given up, for example because a read of its file does not return. The lease
	// is no longer renewed in the background.
	{"lease of a call that was given up", Leases, script(`a acquire; a save 1; a begin; a leave; a expired; a resume; a begin; a save 2; b !acquire;
		a leave; b acquire; b save 3; a resume; a !begin; a lost; a !save 4; a !release 4; b release`)},
	// The lease of a dead process expires, but not before its last request must have ended.
	{"lease of a dead process", Leases, script("a acquire; a save 1; a lock locked; a begin; a kill; b !acquire; b wait 1; b !acquire; b acquire; b begin; b acquire locked")},
	// Fencing numbers grow, even if the upload was deleted meanwhile.
	{"fencing numbers", Leases, script("a acquire" + strings.Repeat("; a release; b acquire; b save 1; b release 5; a acquire; a begin; a save 3; a release; b acquire; b delete; b release; a acquire", 3))},
	{"delete under a lease", Leases, deletedUnderLease},
	{"save without a lease", Leases, script(`b !save 7; b !delete; a acquire; a save 1; b !save 7; b !delete; a store-save 2; a release;
		b !save 7; b !delete; a !save 7; a !delete`)},
	{"release", Leases, script("a acquire; a release; b acquire; b release 1; a acquire; a save 2; a release 3; b acquire; b save 4; b release; a acquire; a release")},
	{"release fails", Leases, script("a acquire; a save 1; a pause; a ?release 2; b acquire; b save 3; a resume; b wait 16; b begin; b release")},
	{"concurrent calls of a lease", Leases, concurrentLease},
	{"lease of a clock ahead", Clocks, clocks(10)},
	{"lease of a clock behind", Clocks, clocks(-10)},
}

// renewed checks that a lease does not expire while its holder runs.
func renewed(s *subject) {
	s.steps("a acquire; a save 1; a lock locked; a begin")
	for range 3 * 8 {
		s.calls("b wait 2; b !acquire; b !lock locked")
	}
	s.steps("a renewed; a valid; a held; a begin; a save locked 1; a save 3; a release; a unlock locked; b acquire; b release")
}

// lease checks the methods of a lease.
func lease(s *subject) {
	s.steps("a acquire; b !acquire; a !acquire; b !lock; a save 1; b !acquire; a save 2; b !acquire; a save 3; b !acquire; a held")
	l := s.processes["a"].worker.lease("id")
	if d := l.SaveInterval(); d < 0 || d >= s.place.TTL {
		s.Errorf("SaveInterval returned %v, with a TTL of %v", d, s.place.TTL)
	}
	if err := l.Save(s.Context(), version("none", 1)); err == nil {
		s.Errorf("Save of another upload under the lease succeeded")
	}
	s.observe("none")

	type key struct{}
	ctx, cancel := context.WithCancel(context.WithValue(s.Context(), key{}, "value"))
	defer cancel()
	request, end, err := l.Begin(ctx)
	if err != nil || request.Err() != nil || request.Value(key{}) != "value" {
		s.Fatalf("Begin returned %v, or a context that is done, or is not one of its argument", err)
	}
	defer end()
	cancel()
	if !isDone(request, patience) {
		s.Errorf("the context of a request does not end with that of Begin")
	}
	s.calls("a ~lease-load; a ~begin; a ~save 1; a ~delete; a begin; a release")
	if l.Context().Err() != nil {
		s.Errorf("Context ended with Release")
	}
	s.calls("b lock; b unlock; b ~acquire; a acquire") // a failed Acquire holds nothing
}

// losses are the steps of a process after another one acquired its lease. The last one ends
// the lease.
var losses = []string{"lost", "!begin", "!save 3", "!delete", "!store-save 3", "!store-delete", "!release 3"}

// taken checks that every call of a holder fails after its lease has expired and
// another process has acquired it. Each loss is the next step of one holder.
func taken(s *subject) {
	each := func(script string) {
		for n := range losses {
			s.steps(script, fmt.Sprint("lost-", n))
		}
	}
	each("a acquire %[1]s; a save %[1]s 1; a begin %[1]s")
	s.calls("a pause")
	each("b !acquire %s")
	each("b acquire %[1]s; a ?begin %[1]s; b save %[1]s 5")
	s.calls("a resume")
	for n, loss := range losses {
		id := fmt.Sprint("lost-", n)
		s.steps("a %s %s", loss, id)
		for i := range losses {
			if n < len(losses)-1 {
				s.calls("a %s %s", losses[i], id)
			}
		}
	}
	each("b begin %[1]s; b held %[1]s; b save %[1]s 7; b release %[1]s")
	s.steps("a acquire lost-0")
}

// deletedUnderLease checks that after Delete under a lease, the lease is held until
// Release, or lost finally when another process acquires it.
func deletedUnderLease(s *subject) {
	for n, again := range []string{"a save %[1]s 2; b !acquire %[1]s; a delete %[1]s; a release %[1]s", "a begin %[1]s; b !acquire %[1]s; a release %[1]s", "a release %[1]s"} {
		id := fmt.Sprint("id-", n)
		s.steps("a acquire %[1]s; a save %[1]s 1; a delete %[1]s", id)
		b, c := s.processes["b"], call{Name: "acquire", ID: id}
		if _, err := s.call(s.Context(), b, c); err == nil { // the lease ended with Delete
			s.succeeded(b, s.upload(id), c)
			s.steps("a !begin %[1]s; a !save %[1]s 3; b release %[1]s; a acquire %[1]s", id)
		} else {
			s.means(err, state.ErrInUse, "Acquire of a lease that is held")
		}
		s.steps(again, id)
		s.steps("b acquire %[1]s; b release %[1]s", id)
	}
}

// concurrentLease checks that the methods of a lease may be called concurrently.
func concurrentLease(s *subject) {
	s.steps("a acquire; a save 1")
	a, saved := s.processes["a"], s.version("id", 1)
	l := a.worker.lease("id")
	use := func() {
		for _, c := range []call{
			{Name: "begin", ID: "id"}, {Name: "save", ID: "id", Upload: saved}, {Name: "lease-load", ID: "id"},
		} {
			got, err := s.call(s.Context(), a, c)
			if fence := l.Fence(); err != nil || c.Name == "lease-load" && !slices.Equal(got.Upload, saved) || fence <= 0 {
				s.Errorf("%s: %v, saved upload %s, fencing number %d", c.Name, err, describe(got.Upload), fence)
			}
		}
	}
	s.together([]func(){use, use, use, use})
	s.steps("a held; a release")
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
