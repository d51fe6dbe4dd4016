package chunk_test

import (
	"encoding/json"
	"gcsup/chunk"
	"testing"
)

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
