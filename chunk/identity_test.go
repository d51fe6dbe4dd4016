package chunk_test

import (
	"encoding/json"
	"testing"

	"gcsup/chunk"
)

func TestIdentityCompare(t *testing.T) {
	was := chunk.Identity{Size: 1, ModTimeNS: 2, ChangeTimeNS: 3, Device: 4, Inode: 5}
	for _, test := range []struct {
		name string
		edit func(*chunk.Identity)
		want chunk.Change
	}{
		{"nothing", func(*chunk.Identity) {}, chunk.Same},
		{"change time", func(id *chunk.Identity) { id.ChangeTimeNS++ }, chunk.ChangeTimeOnly},
		{"device", func(id *chunk.Identity) { id.Device++ }, chunk.ChangeTimeOnly},
		{"size", func(id *chunk.Identity) { id.Size++ }, chunk.Different},
		{"modification time", func(id *chunk.Identity) { id.ModTimeNS-- }, chunk.Different},
		{"inode", func(id *chunk.Identity) { id.Inode++ }, chunk.Different},
		{"both times", func(id *chunk.Identity) { id.ModTimeNS++; id.ChangeTimeNS++ }, chunk.Different},
	} {
		is := was
		test.edit(&is)
		if got := was.Compare(is); got != test.want {
			t.Errorf("%s: Compare = %v, want %v", test.name, got, test.want)
		}
		if got := is.Compare(was); got != test.want {
			t.Errorf("%s: Compare the other way = %v, want %v", test.name, got, test.want)
		}
	}
}

// TestSavedJSON checks the JSON of saved types. Older files have it, so that it
// must not change.
func TestSavedJSON(t *testing.T) {
	for _, test := range []struct {
		value any
		want  string
	}{
		{chunk.Identity{Size: 1, ModTimeNS: -2, ChangeTimeNS: 3, Device: 4, Inode: 1<<64 - 1},
			`{"size":1,"mod_time_ns":-2,"change_time_ns":3,"device":4,"inode":18446744073709551615}`},
		{chunk.Checkpoint{Offset: 5 << 40, CRC32C: 1<<32 - 1}, `{"offset":5497558138880,"crc32c":4294967295}`},
	} {
		got, err := json.Marshal(test.value)
		if err != nil || string(got) != test.want {
			t.Errorf("Marshal(%+v) = %s, %v, want %s", test.value, got, err, test.want)
		}
	}
}
