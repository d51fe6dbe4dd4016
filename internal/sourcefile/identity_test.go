package sourcefile_test

import (
	"errors"
	"io/fs"
	"path/filepath"
	"testing"

	"gcsup/chunk"
	"gcsup/internal/sourcefile"
)

func TestIdentityCompare(t *testing.T) {
	was := chunk.Identity{Size: 1, ModTimeNS: 2, ChangeTimeNS: 3, Device: 4, Inode: 5}
	for _, test := range []struct {
		name string
		edit func(*chunk.Identity)
		want sourcefile.Change
	}{
		{"nothing", func(*chunk.Identity) {}, sourcefile.Same},
		{"change time", func(id *chunk.Identity) { id.ChangeTimeNS++ }, sourcefile.ChangeTimeOnly},
		{"device", func(id *chunk.Identity) { id.Device++ }, sourcefile.ChangeTimeOnly},
		{"size", func(id *chunk.Identity) { id.Size++ }, sourcefile.Different},
		{"modification time", func(id *chunk.Identity) { id.ModTimeNS-- }, sourcefile.Different},
		{"inode", func(id *chunk.Identity) { id.Inode++ }, sourcefile.Different},
		{"both times", func(id *chunk.Identity) { id.ModTimeNS++; id.ChangeTimeNS++ }, sourcefile.Different},
	} {
		is := was
		test.edit(&is)
		if got := sourcefile.Compare(was, is); got != test.want {
			t.Errorf("%s: Compare = %v, want %v", test.name, got, test.want)
		}
		if got := sourcefile.Compare(is, was); got != test.want {
			t.Errorf("%s: Compare the other way = %v, want %v", test.name, got, test.want)
		}
	}
}

func TestStatIdentity(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if _, err := sourcefile.StatIdentity(path); !errors.Is(err, fs.ErrNotExist) || !errors.Is(err, chunk.ErrRead) {
		t.Errorf("missing file: %v", err)
	}
	path = file(t, content(10))
	want := identity(t, open(t, path))
	if got, err := sourcefile.StatIdentity(path); err != nil || got != want {
		t.Errorf("StatIdentity = %+v, %v, want %+v", got, err, want)
	}
}
