package sourcefile_test

import (
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
