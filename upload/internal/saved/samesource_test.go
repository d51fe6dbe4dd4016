package saved

import (
	"errors"
	"strings"
	"testing"

	"gcsup/chunk"
	"gcsup/internal/sourcefile"
	"gcsup/session"
	"gcsup/session/state"
	"gcsup/session/state/bucketstore"
)

// TestSameSource checks what must be compared before an upload continues. A version or an identity that the
// caller gave replaces the times of a file.
func TestSameSource(t *testing.T) {
	file := chunk.Identity{Size: 8, ModTimeNS: 1}
	parts := &state.Parts{}
	const notAsked sourcefile.Change = -1
	for _, tt := range []struct {
		name            string
		version, source string // of the call
		saved           state.Upload
		size            int64
		times           sourcefile.Change // that of the file, if it is asked
		doubt           Doubt
		changed         string // in the error; "" if there is none
	}{
		{"same times", "", "", state.Upload{Source: file}, 8, sourcefile.Same, NoDoubt, ""},
		{"chmod", "", "", state.Upload{Source: file}, 8, sourcefile.ChangeTimeOnly, AllBytes, ""},
		{"edited", "", "", state.Upload{Source: file, SourcePath: "/a"}, 8, sourcefile.Different, 0, "/a is not the file"},
		{"same version", "v1", "", state.Upload{Source: file, SourceVersion: "v1"}, 8, notAsked, LastBytes, ""},
		{"same version, another size", "v1", "", state.Upload{Source: file, SourceVersion: "v1"}, 9, notAsked, 0, "it has 9 bytes, the source of the saved upload 8"},
		{"another version", "v1", "", state.Upload{Source: file, SourceVersion: "v2"}, 8, notAsked, 0, `"v1", that of the saved upload "v2"`},
		{"version not saved", "v1", "", state.Upload{Source: file}, 8, sourcefile.Same, NoDoubt, ""},
		{"version not given", "", "", state.Upload{Source: file, SourceVersion: "v2"}, 8, sourcefile.ChangeTimeOnly, AllBytes, ""},
		{"parts", "v1", "", state.Upload{Source: file, SourceVersion: "v1", Parts: parts}, 8, sourcefile.ChangeTimeOnly, AllBytes, ""},
		{"identity", "", "bucket/o", state.Upload{Source: file}, 8, notAsked, LastBytes, ""},
		{"identity, another size", "", "bucket/o", state.Upload{Source: file}, 7, notAsked, 0, `"bucket/o" has 7 bytes`},
	} {
		j := &Journal{draft: state.Upload{SourceVersion: tt.version, SourceIdentity: tt.source}}
		asked := notAsked
		doubt, err := j.SameSource(&tt.saved, tt.size, func(was chunk.Identity, _, _ bool) sourcefile.Change {
			if asked = tt.times; was != file {
				t.Errorf("%s: compared with %+v", tt.name, was)
			}
			return tt.times
		})
		if asked != tt.times {
			t.Errorf("%s: the times were compared: %v", tt.name, asked != notAsked)
		}
		switch {
		case tt.changed == "":
			if err != nil || doubt != tt.doubt {
				t.Errorf("%s: %v, %v, want %v", tt.name, doubt, err, tt.doubt)
			}
		case !errors.Is(err, session.ErrSourceChanged) || !strings.Contains(err.Error(), tt.changed):
			t.Errorf("%s: %v, want ErrSourceChanged with %s", tt.name, err, tt.changed)
		}
	}
}

// TestSameSourceOfAnotherMachine checks that a shared store, and an upload of which only the size is known,
// are reported to the comparison of times.
func TestSameSourceOfAnotherMachine(t *testing.T) {
	dir, _ := openDir(t)
	full := chunk.Identity{Size: 8, ModTimeNS: 1}
	for _, tt := range []struct {
		store            state.Store
		doc              state.Upload
		shared, imported bool
	}{
		{dir, state.Upload{Source: full}, false, false},
		{dir, state.Upload{Source: chunk.Identity{Size: 8}}, false, true},
		{dir, state.Upload{Source: chunk.Identity{Size: 8}, SourceIdentity: "bucket/o"}, false, false},
		{&bucketstore.Store{}, state.Upload{Source: full}, true, false},
	} {
		j := &Journal{store: tt.store}
		if _, err := j.SameSource(&tt.doc, 8, func(_ chunk.Identity, shared, imported bool) sourcefile.Change {
			if shared != tt.shared || imported != tt.imported {
				t.Errorf("%T, %+v: shared %v, imported %v", tt.store, tt.doc.Source, shared, imported)
			}
			return sourcefile.Same
		}); err != nil {
			t.Error(err)
		}
	}
}
