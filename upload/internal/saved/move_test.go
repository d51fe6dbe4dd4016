package saved

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"gcsup/internal/require"
	"gcsup/session/state"
)

// moveTo returns the callback of Move that gives an upload a new ID and a new path.
func moveTo(id string) func(*state.Upload) (*state.Upload, error) {
	return func(t *state.Upload) (*state.Upload, error) {
		moved := *t
		moved.ID, moved.SourcePath = id, "/new"
		return &moved, nil
	}
}

// idsOf returns the IDs that a store has.
func idsOf(t *testing.T, store state.Store) string {
	t.Helper()
	ids, err := store.List(t.Context())
	require.NoError(t, err)
	return strings.Join(ids, " ")
}

// TestMove checks a move to another ID and to another path with the same ID.
func TestMove(t *testing.T) {
	uri := newService(t).start()
	for _, to := range []string{newID, id} {
		dir, _ := openDir(t)
		save(t, dir, newDoc(id, uri))
		got, err := Move(t.Context(), dir, id, "/new", moveTo(to))
		if err != nil || got != to || idsOf(t, dir) != to {
			t.Fatalf("moved to %s, %v, and the store has %s", got, err, idsOf(t, dir))
		}
		if doc := load(t, dir, to); doc.SourcePath != "/new" || doc.MovedTo != "" || doc.MovedFrom != "" || !sameURI(doc.URI, uri) || doc.HighWater != 2*q {
			t.Errorf("the saved upload is %+v", doc)
		}
		for _, free := range []string{id, newID} {
			_, lease, err := Lock(t.Context(), dir, free)
			if err == nil {
				Release(t.Context(), lease)
			}
			if errors.Is(err, state.ErrInUse) {
				t.Errorf("after the move: %v", err)
			}
		}
	}
}

// TestMoveInterrupted interrupts a move at each call of the store: the call fails before or after its
// effect, and the process dies or continues. One usable upload must remain, at the old ID until the second
// step and then at the new one, and a call with either ID must complete the move.
func TestMoveInterrupted(t *testing.T) {
	uri := newService(t).start()
	const secondStep = 5 // the call that saves the saved upload of the new ID
	for at := 1; ; at++ {
		calls := 0
		for run := range 8 {
			how, dies, first := []fault{before, after}[run%2], run&2 != 0, []string{id, newID}[run/4]
			dir, _ := openDir(t)
			save(t, dir, newDoc(id, uri))
			f := &faulty{Store: dir, fault: func(_ string, call int) fault {
				switch {
				case call == at:
					return how
				case call > at && dies:
					return before
				}
				return works
			}}
			_, err := Move(t.Context(), f, id, "/new", moveTo(newID))
			if calls = f.calls; calls < at {
				break
			}
			if !errors.Is(err, errFault) {
				t.Errorf("call %d: %v, want %v", at, err, errFault)
			}
			var usable []string
			for e := range List(t.Context(), dir) {
				usable = append(usable, e.ID)
			}
			// What was not done before call 3, which saves MovedTo, is not done afterwards.
			begun, arrived := at > 3 || at == 3 && how == after, at > secondStep || at == secondStep && how == after
			if want := map[bool]string{false: id, true: newID}[arrived]; !slices.Equal(usable, []string{want}) {
				t.Errorf("call %d, %v: the usable uploads are %v, want %s", at, how, usable, want)
			}
			doc, lease, err := Lock(t.Context(), dir, first)
			if errors.Is(err, state.ErrNotFound) {
				doc, lease, err = Lock(t.Context(), dir, map[string]string{id: newID, newID: id}[first])
			}
			if err != nil {
				t.Fatalf("call %d, %v: %v", at, how, err)
			}
			Release(t.Context(), lease)
			want, path := id, "/source"
			if begun {
				want, path = newID, "/new"
			}
			if left := idsOf(t, dir); doc.ID != want || left != want || doc.MovedTo+doc.MovedFrom != "" || doc.SourcePath != path || doc.HighWater != 2*q {
				t.Errorf("call %d, %v: the upload is %s from %s, and the store has %s; want %s from %s", at, how, doc.ID, doc.SourcePath, left, want, path)
			}
		}
		if calls < at {
			if calls < 8 {
				t.Errorf("a move has %d calls of the store, want 8 or more", calls)
			}
			return
		}
	}
}

// TestLockOfMovedUploads checks which upload Lock returns, and what it leaves in the store, for each state of
// both IDs of a move.
func TestLockOfMovedUploads(t *testing.T) {
	uri := newService(t).start()
	const fresh, moving, parts, damaged, version = "fresh", "moving", "parts", "damaged", "version"
	for _, tt := range []struct {
		old, new string // the saved uploads; "" if there is none
		lock     string
		want     any    // the ID, or the error
		left     string // in the store
	}{
		{"", "", id, state.ErrNotFound, ""},
		{damaged, "", id, state.ErrCorrupt, id},
		{fresh, "", id, id, id},
		{fresh, fresh, id, id, id + " " + newID},
		// Before the second step the old saved upload is used.
		{moving, "", id, newID, newID},
		{moving, damaged, id, newID, newID},
		{moving, version, id, state.ErrVersion, id + " " + newID},
		{parts, "", id, newID, newID},
		// After it, the new one.
		{moving, moving, id, newID, newID},
		{moving, moving, newID, newID, newID},
		{"", moving, newID, newID, newID},
		{fresh, moving, newID, newID, id + " " + newID}, // another upload of a file at the old path
		{damaged, moving, newID, newID, id + " " + newID},
		{version, moving, newID, state.ErrVersion, id + " " + newID},
		// The user started another upload of the file at the new path. Parts at the service must be removed.
		{moving, fresh, id, newID, newID},
		{parts, fresh, id, newID, newID + " removed"},
	} {
		dir, path := openDir(t)
		for this, kind := range map[string]string{id: tt.old, newID: tt.new} {
			doc := newDoc(this, uri)
			switch {
			case kind == "":
				continue
			case kind == damaged:
				damage(t, path, this, "x")
				continue
			case kind == version:
				damage(t, path, this, newer)
				continue
			case kind == parts:
				doc.Session = state.Session{Created: doc.Created}
				doc.Parts = &state.Parts{Size: 4 * q, Prefix: "gcsup-parts/x/", List: make([]state.Part, 1)}
				doc.MovedTo = newID
			case kind == moving && this == id:
				doc.MovedTo = newID
			case kind == moving:
				doc.MovedFrom = id
			}
			save(t, dir, doc)
		}
		name := strings.Join([]string{tt.old, tt.new, tt.lock}, ", ")
		doc, lease, err := Lock(t.Context(), dir, tt.lock)
		if err == nil {
			if doc.ID != tt.want || doc.MovedTo+doc.MovedFrom != "" {
				t.Errorf("%s: locked %+v, want %v", name, doc, tt.want)
			}
			if _, err := dir.Lock(t.Context(), doc.ID); !errors.Is(err, state.ErrInUse) {
				t.Errorf("%s: the lease is not held: %v", name, err)
			}
			Release(t.Context(), lease)
		} else if want, _ := tt.want.(error); !errors.Is(err, want) || want == nil {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
		left := idsOf(t, dir)
		if at := strings.Index(left, "removed-"); at >= 0 {
			if retired := load(t, dir, left[at:]); !retired.Parts.Over || retired.MovedTo != "" {
				t.Errorf("%s: the upload to remove is %+v", name, retired)
			}
			left = left[:at] + "removed"
		}
		if left != tt.left {
			t.Errorf("%s: the store has %q, want %q", name, left, tt.left)
		}
		for _, free := range []string{id, newID} {
			unlock, err := dir.Lock(t.Context(), free)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			unlock()
		}
	}
}

// TestMoveRefused checks that a move which cannot be made changes nothing.
func TestMoveRefused(t *testing.T) {
	uri := newService(t).start()
	refused := errors.New("the size differs")
	for name, tt := range map[string]struct {
		doc     *state.Upload
		newID   string // what the store has there
		held    string // the ID of an upload that runs
		to      func(*state.Upload) (*state.Upload, error)
		want    error
		contain string
	}{
		"no upload":       {nil, "", "", moveTo(newID), state.ErrNotFound, ""},
		"in use":          {newDoc(id, uri), "", id, moveTo(newID), state.ErrInUse, ""},
		"another source":  {newDoc(id, uri), "", "", func(*state.Upload) (*state.Upload, error) { return nil, refused }, refused, ""},
		"another upload":  {newDoc(id, uri), "fresh", "", moveTo(newID), fs.ErrExist, newID + " of /new to gs://bkt/obj"},
		"newer upload":    {newDoc(id, uri), newer, "", moveTo(newID), state.ErrVersion, ""},
		"new ID in use":   {newDoc(id, uri), "", newID, moveTo(newID), state.ErrInUse, "/new"},
		"damaged at both": {nil, "x", "", moveTo(newID), state.ErrNotFound, ""},
	} {
		dir, path := openDir(t)
		switch {
		case tt.newID == "fresh":
			save(t, dir, newDoc(newID, uri))
		case tt.newID != "":
			damage(t, path, newID, tt.newID)
		}
		if tt.doc != nil {
			save(t, dir, tt.doc)
		}
		unlock := func() {}
		if tt.held != "" {
			unlock, _ = dir.Lock(t.Context(), tt.held)
		}
		was := idsOf(t, dir)
		if _, err := Move(t.Context(), dir, id, "/new", tt.to); !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.contain) {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
		unlock()
		if now := idsOf(t, dir); now != was || tt.doc != nil && load(t, dir, id).MovedTo != "" {
			t.Errorf("%s: the store has %s, and had %s", name, now, was)
		}
	}
}

// TestFollow checks which ID a saved upload has after a move, and that Exists sees what could be one.
func TestFollow(t *testing.T) {
	uri := newService(t).start()
	dir, path := openDir(t)
	moving, saved := newDoc(id, uri), newDoc("saved", uri)
	moving.MovedTo = newID
	save(t, dir, moving, saved)
	damage(t, path, "damaged", "x")
	damage(t, path, "newer", newer)
	if Exists(t.Context(), dir, newID) {
		t.Error("an upload that is not saved yet exists")
	}
	for _, tt := range [][2]string{{id, newID}, {newID, newID}, {"saved", "saved"}, {"damaged", "damaged"}, {"newer", "newer"}, {"none", "none"}} {
		from, want := tt[0], tt[1]
		if got, err := Follow(t.Context(), dir, from); err != nil || got != want {
			t.Errorf("%s is now %s, %v; want %s", from, got, err, want)
		}
		if got := Exists(t.Context(), dir, want); got != (want != "none") {
			t.Errorf("%s exists: %v", want, got)
		}
	}
	broken := &faulty{Store: dir, fault: func(string, int) fault { return before }}
	if Exists(t.Context(), broken, "saved") {
		t.Error("an upload exists in a store that cannot be read")
	}
}

// TestLockWhenAMoveCannotBeCompleted checks that the error is that of the store. It was one about
// an ID that is not valid.
func TestLockWhenAMoveCannotBeCompleted(t *testing.T) {
	dir, _ := openDir(t)
	moved := newDoc(newID, newService(t).start())
	moved.MovedFrom = id
	save(t, dir, moved)
	full := &faulty{Store: dir, fault: func(op string, _ int) fault {
		if op == "save" {
			return before
		}
		return works
	}}
	if _, _, err := Lock(t.Context(), full, newID); !errors.Is(err, errFault) {
		t.Errorf("%v, want %v", err, errFault)
	}
}
