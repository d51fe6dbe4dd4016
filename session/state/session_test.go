package state_test

import (
	"testing"

	"gcsup/chunk"
	"gcsup/session/state"
)

func TestCheckpoint(t *testing.T) {
	s := state.Session{Checkpoints: []chunk.Checkpoint{{Offset: q, CRC32C: 1}, {Offset: 2 * q, CRC32C: 2}}}
	for _, c := range []struct{ at, want int64 }{{0, 0}, {1, 0}, {q - 1, 0}, {q, q}, {q + 1, q}, {2 * q, 2 * q}, {3 * q, 2 * q}} {
		if got := s.Checkpoint(c.at); got.Offset != c.want {
			t.Errorf("Checkpoint(%d) is at %d, want %d", c.at, got.Offset, c.want)
		}
	}
}
