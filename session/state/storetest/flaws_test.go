package storetest_test

import (
	"reflect"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gcsup/session/state"
	"gcsup/session/state/storetest"
)

// flaws lists, for each check, the flaws of a store in memory that it must report. A
// store with locks has them, if the check is not for leases only.
var flaws = map[string][]string{
	"round trip":                   {"the path is text", "the move is lost", "the compression is lost", "times have seconds"},
	"replace":                      {"save does not replace", "save replaces all", "a longer saved upload stays"},
	"pointers":                     {"save keeps the pointer", "a saved upload is loaded once", "save changes the saved upload"},
	"list":                         {"the list has the order of a locale", "the list is one page", "locks are listed"},
	"delete":                       {"delete of nothing fails", "delete does nothing", "delete deletes all"},
	"no upload":                    {"another error of nothing", "nil of nothing"},
	"invalid IDs":                  {"any ID can be locked", "another error of an invalid ID"},
	"damaged":                      {"the ID is not compared", "the error has the data", "damaged is no upload", "load deletes a damaged upload"},
	"newer version":                {"newer is damaged", "load deletes a newer upload", "the error has the data"},
	"concurrent saves":             {"save is not atomic", "save deletes first", "only one save at a time"},
	"concurrent saves and deletes": {"a deletion breaks a save", "a save breaks a deletion"},
	"canceled":                     {"no upload if canceled", "a canceled save is cut", "nothing is listed if canceled", "a canceled lock stays", "the cause of a context is returned"},
	"lock": {
		"locks do nothing", "a process can lock twice", "another error of a lock", "lock waits", "save unlocks", "delete unlocks", "unlock deletes",
		"no HeldError of a lock",
	},
	"holder of a lock":               {"the HeldError is of the caller", "a later holder has an earlier Since"},
	"unlock twice":                   {"unlock unlocks any lock"},
	"reads without the lock":         {"load needs the lock", "load locks"},
	"lock race":                      {"two can lock"},
	"lock check":                     {"never locked", "only others lock", "the check locks"},
	"crash between calls":            {"a lock survives its process", "a save is lost in a crash"},
	"crash between calls of a lease": {"a lock survives its process", "a save is lost in a crash"},
	"crash during calls":             {"a save is lost in a crash", "save returns before it is durable"},

	"lease": {
		"no HeldError", "nothing is left", "a lease saves any upload", "no fencing numbers", "a request has another context", "Context ends with Release",
		"the cause of a context is returned",
	},
	"lease race":                    {"two can acquire"},
	"lease is renewed":              {"leases are not renewed", "the renewal does not show", "the holder is that of the renewal", "the TTL is what is left"},
	"lease runs out and is renewed": {"requests do not end", "Begin does nothing", "Context ends with the lease", "a lease that ran out is lost"},
	"lease runs out and is acquired": {
		"a lost lease is renewed", "Context never ends", "the loss has another cause", "save under a lost lease", "delete under a lost lease",
		"release of a lost lease saves", "requests may last too long", "a lease runs out early", "Begin does nothing",
	},
	"lease of a call that was given up": {"a lease outlives its call", "a lease ends with its call"},
	"lease of a dead process":           {"a lease never runs out", "requests may last too long", "every look is a renewal"},
	"fencing numbers":                   {"no fencing numbers", "fencing numbers of a process", "fencing numbers are deleted"},
	"delete under a lease":              {"delete ends the lease, and save does not see it"},
	"save without a lease":              {"save needs no lease", "delete needs no lease"},
	"release":                           {"release keeps the lease", "release does not save"},
	"release fails":                     {"release hides its failure"},
	"concurrent calls of a lease":       {"calls exclude each other"},
	"lease of a clock ahead":            {"the holder's clock decides", "the challenger's clock decides"},
	"lease of a clock behind":           {"the holder's clock decides", "the challenger's clock decides"},
}

// TestFlaws checks that each check fails for the flaws that it must detect.
func TestFlaws(t *testing.T) {
	for _, c := range storetest.Checks() {
		if len(flaws[c.Name]) == 0 {
			t.Errorf("no store fails the check %q", c.Name)
		}
		for _, flaw := range flaws[c.Name] {
			t.Run(c.Name+"/"+flaw, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var ttl time.Duration
					if c.Needs == storetest.Leases || c.Needs == storetest.Clocks {
						ttl = time.Minute
					}
					for range attempts {
						found := fails(t, c, newMemory(flaw, ttl).place())
						time.Sleep(time.Second) // a save may be late
						if found {
							return
						}
					}
					t.Errorf("the check %q does not report that %s", c.Name, flaw)
				})
			})
		}
	}
	for name := range flaws {
		if !slices.ContainsFunc(storetest.Checks(), func(c storetest.Check) bool { return c.Name == name }) {
			t.Errorf("there is no check %q", name)
		}
	}
}

// attempts is how often a check is made. Some flaws show only if two goroutines
// collide.
const attempts = 20

// recorder is a testing.TB that records failures.
type recorder struct {
	testing.TB
	failed atomic.Bool
}

// fails reports whether a check fails for a place.
func fails(t *testing.T, c storetest.Check, place storetest.Place) bool {
	r := &recorder{TB: t}
	var done sync.WaitGroup
	done.Go(func() { c.Run(r, place) }) // Fatalf ends only this goroutine
	done.Wait()
	return r.failed.Load()
}

func (r *recorder) Errorf(string, ...any) { r.failed.Store(true) }

func (r *recorder) Fatalf(string, ...any) {
	r.failed.Store(true)
	runtime.Goexit()
}

// TestIncompletePlaces checks that an incomplete Place fails every check.
func TestIncompletePlaces(t *testing.T) {
	type place = storetest.Place
	type process = storetest.Process
	// in changes each process of a place.
	in := func(change func(*process)) func(*place) {
		return func(p *place) {
			open := p.Open
			p.Open = func() process {
				opened := open()
				change(&opened)
				return opened
			}
		}
	}
	const locks, leases = 0, time.Minute
	for _, incomplete := range []struct {
		name   string
		ttl    time.Duration
		change func(*place)
	}{
		{"no Put", locks, func(p *place) { p.Put = nil }},
		{"no Kill", locks, in(func(p *process) { p.Kill = nil })},
		{"no Store", locks, in(func(p *process) { p.Store = nil })},
		{"a TTL of locks", locks, func(p *place) { p.TTL = time.Minute }},
		{"leases that are missing", locks, func(p *place) { p.Without = []storetest.Feature{storetest.Quarantine} }},
		{"lock checks that it has", locks, func(p *place) { p.Without = append(p.Without, storetest.LockChecks) }},
		{"an unknown feature", locks, func(p *place) { p.Without = append(p.Without, "x") }},
		{"no TTL", leases, func(p *place) { p.TTL = 0 }},
		{"no Pause", leases, in(func(p *process) { p.Pause = nil })},
		{"no clocks", leases, func(p *place) { p.OpenAhead = nil }},
		{"clocks that it has", leases, func(p *place) { p.Without = append(p.Without, storetest.Clocks) }},
		{"a quarantine that is gone", leases, func(p *place) { p.Without = nil }},
	} {
		p := newMemory("", incomplete.ttl).place()
		incomplete.change(&p)
		if !fails(t, storetest.Checks()[0], p) {
			t.Errorf("a Place with %s is accepted", incomplete.name)
		}
	}
}

// TestEveryField checks that the round trip has a value in every field that is saved.
func TestEveryField(t *testing.T) {
	all := storetest.Full(t)
	for name, value := range map[string]func(*state.Upload) reflect.Value{
		"Upload": func(t *state.Upload) reflect.Value { return reflect.ValueOf(*t) },
		"Spec":   func(t *state.Upload) reflect.Value { return reflect.ValueOf(t.Spec) },
	} {
		for field := range value(all[0]).Type().Fields() {
			if field.Tag.Get("json") == "-" {
				continue
			}
			if !slices.ContainsFunc(all, func(t *state.Upload) bool { return !value(t).FieldByIndex(field.Index).IsZero() }) {
				t.Errorf("no saved upload has a value in %s.%s", name, field.Name)
			}
		}
	}
}
