package storetest

import (
	"slices"
	"strings"

	"gcsup/session/state"
)

// tokenChecks check the saved uploads.
var tokenChecks = []check{
	{"round trip", "", roundTrip},
	{"replace", "", script("b lock other; b save other 9; a lock; a save 1; a save 2; a save 3; a save 3; a unlock; b unlock other")},
	{"pointers", "", pointers},
	{"list", "", list},
	{"delete", "", script("b lock other; b save other 1; a lock; a delete; a save 1; a delete; a delete; a save 1; a delete; a delete; a unlock; b unlock other")},
	{"no upload", "", script("b lock none; b unlock none; b lock; b unlock")},
	{"invalid IDs", "", invalidIDs},
	{"damaged", "", damaged},
	{"newer version", "", newerVersion},
	{"concurrent saves", "", concurrent(false)},
	{"concurrent saves and deletes", "", concurrent(true)},
	{"canceled", "", canceled},
}

// roundTrip checks that Load returns every field that was saved, in any process.
func roundTrip(s *subject) {
	for _, want := range full(s) {
		s.steps("a lock %s", want.ID)
		s.make(s.processes["a"], s.upload(want.ID), 0, call{Name: "save", ID: want.ID, Upload: encode(s, want)})
		s.steps("a unlock %s", want.ID)
		s.start("a new process", s.place.Open())
		s.observeAll()
	}
}

// pointers checks that the Store keeps no pointer into the saved upload of Save, does not
// change it, and returns a new saved upload from each Load. Only a handle can be checked.
func pointers(s *subject) {
	s.steps("a lock; a save 1")
	store := s.processes["a"].Store
	if store == nil {
		return
	}
	change := func(t *state.Upload) {
		t.ID, t.Committed, t.HighWater = "changed", 7, 7
		t.Spec.Metadata["key"] = "changed"
		t.Checkpoints[0].CRC32C++
	}
	given := version("id", 1)
	if err := store.Save(s.Context(), given); err != nil || !slices.Equal(encode(s, given), s.version("id", 1)) {
		s.Errorf("Save changed the saved upload, or failed: %v", err)
	}
	change(given)
	s.observeAll()
	loaded, err := store.Load(s.Context(), "id")
	if err != nil {
		s.Fatalf("Load: %v", err)
	}
	change(loaded)
	s.observeAll()
}

// list checks that List returns the IDs of the saved uploads, sorted by their bytes. The
// order is not that of a locale. No two IDs differ in case only: a directory of macOS or
// Windows does not distinguish them. A lock is not an upload.
func list(s *subject) {
	for _, id := range []string{"b", "C", "-", "_", "0x", "a_b", "aXc", "a-d", strings.Repeat("x", 64), "Z9"} {
		s.steps("a lock %[1]s; a save %[1]s 1; a unlock %[1]s", id)
	}
	s.steps("a lock locked; a unlock locked; b lock b; b save b 2; b delete b; b unlock b")
}

// invalidIDs checks that invalid IDs are refused: they could have a special meaning
// in a path or a query.
func invalidIDs(s *subject) {
	s.steps("a lock; a save 1; a unlock")
	a := s.processes["a"]
	for _, id := range []string{"", ".", "..", "../id", "a/b", `a\b`, "a.b", "a b", "%", "i*", "ä", "id\x00", strings.Repeat("x", 65)} {
		_, err := s.call(s.Context(), a, call{Name: "load", ID: id})
		s.means(err, state.ErrNotFound, "Load of the invalid ID %q", id)
		if _, err := s.call(s.Context(), a, call{Name: "lock", ID: id}); err == nil {
			s.Errorf("Lock of the invalid ID %q succeeded", id)
		}
		_, _ = s.call(s.Context(), a, call{Name: "delete", ID: id}) // an error is allowed
		if a.Store != nil && a.Store.Save(s.Context(), version(id, 3)) == nil {
			s.Errorf("Save with the invalid ID %q succeeded", id)
		}
	}
	s.observeAll()
}

// put stores bytes instead of a saved upload. The error of Load must then wrap damage.
func (s *subject) put(id string, data []byte, damage error) {
	s.Helper()
	if err := s.place.Put(id, data); err != nil {
		s.Fatalf("Put: %v", err)
	}
	s.upload(id).saved, s.upload(id).damage = nil, damage
	s.observeAll()
	s.observeAll() // Load changed nothing
}

// damaged checks that a damaged upload is reported, stays as it is until SetAside, and
// can then start over.
func damaged(s *subject) {
	for name, damage := range damages {
		id := "damaged-" + strings.ReplaceAll(name, " ", "-")
		s.put(id, damage(s, s.version(id, 1)), state.ErrCorrupt)
		s.steps("a lock %[1]s; a set-aside %[1]s; a set-aside %[1]s; a save %[1]s 2; a delete %[1]s; a unlock %[1]s", id)
	}
}

// newerVersion checks that an upload of a newer program is reported, and kept.
func newerVersion(s *subject) {
	data := s.version("id", 1)
	s.put("id", edited(s, data, "v", 1000), state.ErrVersion)
	s.steps("a lock; a unlock")
	s.put("id", edited(s, data, "tomorrow", true), state.ErrVersion)
	s.steps("a lock; a unlock")
}

// concurrent returns a check that goroutines may save the same upload concurrently, or save
// and delete it, and that a reader without the lock always loads one of the saved uploads.
func concurrent(deletes bool) func(*subject) {
	return func(s *subject) {
		s.steps("a lock")
		a, b := s.processes["a"], s.processes["b"]
		first := call{Name: "save", ID: "id", Upload: s.version("id", 1)}
		other := call{Name: "save", ID: "id", Upload: s.version("id", 2)}
		if deletes {
			other = call{Name: "delete", ID: "id"}
		} else {
			s.steps("a save 1")
		}
		change := func(c call) func() {
			return func() {
				if _, err := s.call(s.Context(), a, c); err != nil {
					s.Errorf("%s while other goroutines change the same upload: %v", c.Name, err)
				}
				s.loadsOneOf(b, "id", first.Upload, other.Upload)
			}
		}
		read := func(p *process) func() {
			return func() {
				s.loadsOneOf(p, "id", first.Upload, other.Upload)
				if !deletes {
					s.lists(p)
				}
			}
		}
		s.together([]func(){change(other), change(first), change(other), change(first)}, read(a), read(b))
		s.upload("id").unsure = s.place.TTL > 0
		s.steps("a save 1; a delete; a unlock")
	}
}

// canceled checks that a call whose context is done has its complete effect or none.
func canceled(s *subject) {
	s.steps("a ~lock; b lock; b unlock; a lock; a save 1; a ~save 2; a save 1; a ~delete; a save 1")
	for _, name := range []string{"load", "list"} {
		got, err := s.call(ended(), s.processes["a"], call{Name: name, ID: "id"})
		s.means(err, nil, "%s with a context that is done", name)
		if err == nil && !slices.Equal(got.Upload, s.upload("id").saved) && !slices.Equal(got.IDs, []string{"id"}) {
			s.Errorf("%s with a context that is done returned %s and %q", name, describe(got.Upload), got.IDs)
		}
	}
	s.steps("a unlock; b lock")
}
