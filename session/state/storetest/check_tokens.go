package storetest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"gcsup/session/state"
)

// tokenChecks check the saved Tokens.
var tokenChecks = []check{
	{"round trip", "", roundTrip},
	{"replace", "", replace},
	{"pointers", "", pointers},
	{"list", "", list},
	{"delete", "", remove},
	{"no token", "", noToken},
	{"invalid IDs", "", invalidIDs},
	{"damaged", "", damaged},
	{"newer version", "", newerVersion},
	{"concurrent saves", "", concurrentSaves},
	{"concurrent saves and deletes", "", concurrentDeletes},
	{"canceled", "", canceled},
}

// roundTrip checks that Load returns every field that was saved, in any process.
func roundTrip(s *subject) {
	a, b := s.start(), s.start()
	for _, want := range full(s) {
		unlock := s.lock(a, want.ID)
		s.save(a, want)
		s.saved(from(a, want.ID), want)
		s.saved(from(b, want.ID), want)
		unlock()
		s.saved(from(a, want.ID), want)
		s.saved(from(s.start(), want.ID), want)
	}
}

// replace checks that Save replaces only the Token of its ID.
func replace(s *subject) {
	a, b := s.start(), s.start()
	other := token("other", 9)
	unlockOther := s.lock(b, "other")
	s.save(b, other)
	unlock := s.lock(a, "id")
	for _, want := range []*state.Token{token("id", 1), long("id", 2), token("id", 3), token("id", 3)} {
		s.save(a, want)
		s.saved(from(b, "id"), want)
		s.saved(from(b, "other"), other)
	}
	unlock()
	unlockOther()
	s.saved(from(b, "id"), token("id", 3))
	s.saved(from(a, "other"), other)
	s.list(a, "id", "other")
}

// pointers checks that the Store keeps no pointer into the Token of Save, does not
// change it, and returns a new Token from each Load.
func pointers(s *subject) {
	a := s.start()
	s.lock(a, "id")
	want := token("id", 1)
	given := token("id", 1)
	change := func(t *state.Token) {
		t.ID, t.Committed, t.HighWater = "changed", 7, 7
		t.Spec.Metadata["key"] = "changed"
		t.Checkpoints[0].CRC32C++
	}
	s.save(a, given)
	if !s.same(given, want) {
		s.Errorf("Save changed the Token")
	}
	change(given)
	got := s.saved(from(a, "id"), want)
	change(got)
	s.saved(from(a, "id"), want)
	s.list(a, "id")
}

// list checks that List returns the IDs of the saved uploads, sorted by their bytes.
func list(s *subject) {
	a, b := s.start(), s.start()
	s.list(a)
	// The order is not that of a locale. No two differ in case only: a directory of
	// macOS or Windows does not distinguish them.
	ids := []string{"b", "C", "-", "_", "0", "a_b", "aXc", "a-d", strings.Repeat("x", 64), "Z9"}
	for _, id := range ids {
		unlock := s.lock(a, id)
		s.save(a, token(id, 1))
		unlock()
	}
	slices.Sort(ids)
	s.list(a, ids...)
	s.list(b, ids...)
	// A lock is not an upload.
	unlock := s.lock(a, "locked")
	s.list(b, ids...)
	unlock()
	s.list(b, ids...)
	// A saved upload under a lock is.
	unlock = s.lock(b, "b")
	s.list(a, ids...)
	s.save(b, token("b", 2))
	s.list(a, ids...)
	s.remove(b, "b")
	ids = slices.DeleteFunc(ids, func(id string) bool { return id == "b" })
	s.list(a, ids...)
	unlock()
	s.list(b, ids...)
}

// remove checks that Delete deletes one upload, and is no error if there is none.
func remove(s *subject) {
	a, b := s.start(), s.start()
	unlockOther := s.lock(b, "other")
	s.save(b, token("other", 1))
	unlock := s.lock(a, "id")
	s.remove(a, "id")
	for range 2 {
		s.save(a, token("id", 1))
		s.remove(a, "id")
		s.saved(from(a, "id"), nil)
		s.saved(from(b, "id"), nil)
		s.remove(a, "id")
		s.saved(from(b, "other"), token("other", 1))
	}
	s.list(b, "other")
	unlock()
	unlockOther()
	s.list(a, "other")
}

// noToken checks the error of an upload that is not saved.
func noToken(s *subject) {
	a, b := s.start(), s.start()
	for range 2 {
		if _, err := a.Store.Load(s.brief(patience), "id"); !errors.Is(err, state.ErrNoToken) {
			s.Errorf("Load of nothing: %v, want state.ErrNoToken", err)
		}
	}
	unlock := s.lock(b, "id")
	if _, err := a.Store.Load(s.brief(patience), "id"); !errors.Is(err, state.ErrNoToken) {
		s.Errorf("Load of nothing that is locked: %v, want state.ErrNoToken", err)
	}
	unlock()
	s.list(a)
}

// invalidIDs checks that invalid IDs are refused: they could have a special meaning
// in a path or a query.
func invalidIDs(s *subject) {
	a := s.start()
	unlock := s.lock(a, "id")
	s.save(a, token("id", 1))
	unlock()
	for _, id := range []string{"", ".", "..", "../id", "a/b", `a\b`, "a.b", "a b", "%", "i*", "ä", "id\x00", strings.Repeat("x", 65)} {
		if _, err := a.Store.Load(s.brief(patience), id); !errors.Is(err, state.ErrNoToken) {
			s.Errorf("Load of the invalid ID %q: %v, want state.ErrNoToken", id, err)
		}
		if unlock, err := a.Store.Lock(s.brief(patience), id); err == nil {
			unlock()
			s.Errorf("Lock of the invalid ID %q succeeded", id)
		}
		_ = a.Store.Delete(s.brief(patience), id) // an error is allowed
		invalid := token("id", 2)
		invalid.ID = id
		if err := a.Store.Save(s.brief(patience), invalid); err == nil {
			s.Errorf("Save with the invalid ID %q succeeded", id)
		}
	}
	s.list(a, "id")
	s.saved(from(a, "id"), token("id", 1))
}

// damaged checks that a damaged upload is reported, stays as it is until SetAside, and
// can then start over.
func damaged(s *subject) {
	a, b := s.start(), s.start()
	for name, damage := range damages {
		id := "damaged-" + strings.ReplaceAll(name, " ", "-")
		s.put(id, damage(s, s.encode(token(id, 1))))
		for _, p := range []Process{a, b, a} {
			_, err := p.Store.Load(s.brief(patience), id)
			if !errors.Is(err, state.ErrCorruptToken) {
				s.Errorf("Load of an upload that is damaged (%s): %v, want state.ErrCorruptToken", name, err)
			}
			s.secret(err)
		}
		s.list(a, id)
		unlock := s.lock(a, id)
		if _, err := b.Store.Load(s.brief(patience), id); !errors.Is(err, state.ErrCorruptToken) {
			s.Errorf("Load of a damaged upload that is locked: %v", err)
		}
		for range 2 {
			if err := state.SetAside(s.brief(patience), a.Store, id); err != nil {
				s.Errorf("SetAside: %v", err)
			}
			s.saved(from(b, id), nil)
			s.list(b)
		}
		s.save(a, token(id, 2))
		s.saved(from(b, id), token(id, 2))
		s.remove(a, id)
		unlock()
		s.list(b)
	}
}

// newerVersion checks that an upload of a newer program is reported, and kept.
func newerVersion(s *subject) {
	a, b := s.start(), s.start()
	data := s.encode(token("id", 1))
	for name, newer := range map[string][]byte{"version": edited(s, data, "v", 1000), "field": edited(s, data, "tomorrow", true)} {
		s.put("id", newer)
		for _, p := range []Process{a, b, a} {
			_, err := p.Store.Load(s.brief(patience), "id")
			if !errors.Is(err, state.ErrTokenVersion) || errors.Is(err, state.ErrCorruptToken) {
				s.Errorf("Load of an upload with a newer %s: %v, want state.ErrTokenVersion", name, err)
			}
			s.secret(err)
		}
		s.list(a, "id")
		unlock := s.lock(a, "id")
		s.list(b, "id")
		unlock()
		if _, err := b.Store.Load(s.brief(patience), "id"); !errors.Is(err, state.ErrTokenVersion) {
			s.Errorf("Load of an upload with a newer %s, after Lock: %v, want state.ErrTokenVersion", name, err)
		}
	}
}

// concurrentSaves checks that several goroutines may save the same upload
// concurrently, and that a reader without the lock always loads one of the Tokens.
func concurrentSaves(s *subject) {
	a, b := s.start(), s.start()
	s.lock(a, "id")
	short, long := token("id", 1), long("id", 2)
	s.save(a, short)
	var savers, readers sync.WaitGroup
	ctx, stop := context.WithCancel(s.Context())
	defer stop()
	for i := range 4 {
		savers.Go(func() {
			t := []*state.Token{short, long}[i%2]
			for range 8 {
				if err := a.Store.Save(s.brief(patience), t); err != nil {
					s.Errorf("Save while another goroutine saves the same upload: %v", err)
				}
			}
		})
	}
	for _, p := range []Process{a, b} {
		readers.Go(func() {
			for ; ctx.Err() == nil; s.yield() {
				got, err := p.Store.Load(s.brief(patience), "id")
				if err != nil || !s.same(got, short) && !s.same(got, long) {
					s.Errorf("Load while the upload is saved returned %s, %v", describe(got), err)
				}
				if ids, err := p.Store.List(s.brief(patience)); err != nil || !slices.Equal(ids, []string{"id"}) {
					s.Errorf("List while the upload is saved returned %q, %v", ids, err)
				}
			}
		})
	}
	savers.Wait()
	stop()
	readers.Wait()
	s.save(a, short)
	s.saved(from(b, "id"), short)
}

// concurrentDeletes checks that goroutines may save and delete one upload.
func concurrentDeletes(s *subject) {
	a, b := s.start(), s.start()
	s.lock(a, "id")
	t := token("id", 1)
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for range 8 {
				if i%2 == 0 {
					if err := a.Store.Save(s.brief(patience), t); err != nil {
						s.Errorf("Save while another goroutine deletes the upload: %v", err)
					}
				} else if err := a.Store.Delete(s.brief(patience), "id"); err != nil {
					s.Errorf("Delete while another goroutine saves the upload: %v", err)
				}
				if got, err := b.Store.Load(s.brief(patience), "id"); !errors.Is(err, state.ErrNoToken) && (err != nil || !s.same(got, t)) {
					s.Errorf("Load while the upload is saved and deleted returned %s, %v", describe(got), err)
				}
			}
		})
	}
	all.Wait()
	s.remove(a, "id")
	s.saved(from(b, "id"), nil)
	s.list(b)
}

// canceled checks that a call whose context is done has its complete effect or none.
func canceled(s *subject) {
	a, b := s.start(), s.start()
	if unlock, err := a.Store.Lock(ended(), "id"); err == nil {
		unlock()
	} else {
		s.interrupted(err, "Lock")
	}
	unlock := s.lock(b, "id") // a failed Lock holds nothing
	unlock()
	unlock = s.lock(a, "id")
	old, next := token("id", 1), long("id", 2)
	s.save(a, old)
	whole := func(call string, err error, after *state.Token) {
		s.Helper()
		s.interrupted(err, call)
		if err == nil {
			s.saved(from(b, "id"), after)
		} else {
			s.saved(from(b, "id"), old, after)
		}
	}
	whole("Save", a.Store.Save(ended(), next), next)
	s.save(a, old)
	whole("Delete", a.Store.Delete(ended(), "id"), nil)
	s.save(a, old)
	if got, err := a.Store.Load(ended(), "id"); err == nil && !s.same(got, old) {
		s.Errorf("Load with a context that is done returned %s", describe(got))
	} else {
		s.interrupted(err, "Load")
	}
	if ids, err := a.Store.List(ended()); err == nil && !slices.Equal(ids, []string{"id"}) {
		s.Errorf("List with a context that is done returned %q", ids)
	} else {
		s.interrupted(err, "List")
	}
	unlock()
	s.saved(from(b, "id"), old)
	s.lock(b, "id")
}
