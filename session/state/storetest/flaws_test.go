package storetest_test

import (
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gcsup/session/state"
	"gcsup/session/state/storetest"
)

// TestFlaws checks that each check reports the flaws that name it.
func TestFlaws(t *testing.T) {
	checks := make(map[string]storetest.Check)
	for _, c := range storetest.Checks() {
		checks[c.Name] = c
		if !slices.ContainsFunc(flaws, func(f flaw) bool { return slices.Contains(f.reportedBy(), c.Name) }) {
			t.Errorf("no store fails the check %q", c.Name)
		}
	}
	for _, f := range flaws {
		for _, name := range f.reportedBy() {
			c, ok := checks[name]
			if !ok {
				t.Errorf("there is no check %q", name)
				continue
			}
			t.Run(name+"/"+f.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var ttl time.Duration
					if c.Needs == storetest.Leases || c.Needs == storetest.Clocks {
						ttl = time.Minute
					}
					for range attempts {
						found := fails(t, c, newMemory(f, ttl).place())
						time.Sleep(time.Second) // a save may be late
						if found {
							return
						}
					}
					t.Errorf("the check %q does not report that %s", name, f.name)
				})
			})
		}
	}
}

func (f flaw) reportedBy() []string { return strings.Split(f.checks, ", ") }

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
	const locks, leases = 0, time.Minute
	for _, incomplete := range []struct {
		name   string
		ttl    time.Duration
		change func(*place, *process)
	}{
		{"no Put", locks, func(p *place, _ *process) { p.Put = nil }},
		{"no Kill", locks, func(_ *place, p *process) { p.Kill = nil }},
		{"no Store", locks, func(_ *place, p *process) { p.Store = nil }},
		{"a TTL of locks", locks, func(p *place, _ *process) { p.TTL = time.Minute }},
		{"leases that are missing", locks, func(p *place, _ *process) { p.Without = p.Without[:1] }},
		{"hidden lock checks", locks, func(p *place, _ *process) { p.Without = append(p.Without, storetest.LockChecks) }},
		{"an unknown feature", locks, func(p *place, _ *process) { p.Without = append(p.Without, "x") }},
		{"no TTL", leases, func(p *place, _ *process) { p.TTL = 0 }},
		{"no Pause", leases, func(_ *place, p *process) { p.Pause = nil }},
		{"no clocks", leases, func(p *place, _ *process) { p.OpenAhead = nil }},
		{"hidden clocks", leases, func(p *place, _ *process) { p.Without = append(p.Without, storetest.Clocks) }},
		{"a quarantine that is gone", leases, func(p *place, _ *process) { p.Without = nil }},
		{"", leases, func(*place, *process) {}},
	} {
		place := newMemory(flaw{}, incomplete.ttl).place()
		process := place.Open()
		incomplete.change(&place, &process)
		place.Open = func() storetest.Process { return process }
		if accepted := !fails(t, storetest.Checks()[0], place); accepted != (incomplete.name == "") {
			t.Errorf("a Place with %q is accepted: %t", incomplete.name, accepted)
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
