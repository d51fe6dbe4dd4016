//go:build linux

package fire_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gcsup/internal/require"
)

// badFile is a file that no worker can upload.
type badFile struct {
	kind   string // of its dead letter
	object []byte // at its destination; nil if there is none
}

// spoil makes some files bad after they were submitted.
func (f *fire) spoil() {
	f.t.Helper()
	names := f.names()
	take := func() (name, path string) {
		i := f.random.IntN(len(names))
		name = names[i]
		names = slices.Delete(names, i, i+1)
		return name, filepath.Join(f.tree(), name)
	}
	for range 1 + f.random.IntN(3) {
		name, path := take()
		var err error
		switch f.random.IntN(3) {
		case 0:
			err = os.Remove(path)
			f.bad[name] = badFile{kind: "no_input"}
		case 1:
			err = os.WriteFile(path, append(f.files[name], "changed"...), 0o644)
			f.bad[name] = badFile{kind: "stale_copy"}
		case 2:
			object := []byte("of another program")
			f.emulator.put(f.t.T, "data", name, object)
			f.bad[name] = badFile{"precondition", object}
		}
		if err == nil {
			err = f.hide(name)
		}
		require.NoError(f.t, err)
		f.tell(fmt.Sprintf("%s: %s", name, f.bad[name].kind))
	}
}

// hide removes a bad file from machines that have a part of the files: theirs is still as it was submitted, and would be
// uploaded.
func (f *fire) hide(name string) error {
	for _, u := range f.unhealthy {
		if u.defect != partial {
			continue
		}
		if err := os.Remove(filepath.Join(u.view, "tree", name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// names returns the files in order.
func (f *fire) names() []string {
	var names []string
	for name := range f.files {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// letter is a line of status --failed --json.
type letter struct{ Destination, Kind, Reason string }

// checkLetters checks that exactly the bad files became dead letters, for their reasons. out is the
// output of status --failed --json.
func (f *fire) checkLetters(out string) {
	f.t.Helper()
	found := map[string]bool{}
	for line := range strings.Lines(out) {
		var l letter
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			f.t.Errorf("status --failed: %v: %s", err, line)
			continue
		}
		name := strings.TrimPrefix(l.Destination, "gs://data/")
		found[name] = true
		switch bad, ok := f.bad[name]; {
		case !ok:
			f.t.Errorf("%s became a dead letter, and there is nothing wrong with it: %s: %s", name, l.Kind, l.Reason)
		case bad.kind != l.Kind && !f.isOfDefect(l.Kind):
			f.t.Errorf("%s became a dead letter because of %s, want %s: %s", name, l.Kind, bad.kind, l.Reason)
		}
	}
	for name, bad := range f.bad {
		if !found[name] {
			f.t.Errorf("%s did not become a dead letter, want %s", name, bad.kind)
		}
	}
}

// isOfDefect reports whether each file fails with that kind on a machine with a defect. Such a machine may be the
// last that tries a bad file.
func (f *fire) isOfDefect(kind string) bool {
	return slices.ContainsFunc(f.unhealthy, func(u *unhealthy) bool { return lasting[u.defect] == kind })
}
