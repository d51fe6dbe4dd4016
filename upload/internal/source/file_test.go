package source

import (
	"bytes"
	"errors"
	"testing"

	"gcsup/chunk"
	"gcsup/session"
)

// editedAfter returns other bytes after its last byte was read.
type editedAfter struct {
	content []byte
	edited  bool
}

func (e *editedAfter) ReadAt(p []byte, off int64) (int, error) {
	n, err := bytes.NewReader(e.content).ReadAt(p, off)
	if off+int64(n) == int64(len(e.content)) && !e.edited {
		e.edited = true
		e.content[0]++
	}
	return n, err
}

// TestSmallRacyFileThatIsEdited checks that an edit of a small file is detected by
// its bytes if the times do not change, because the edit is in the same tick as the
// previous one.
func TestSmallRacyFileThatIsEdited(t *testing.T) {
	for _, racy := range []bool{false, true} {
		const size = 3<<20 + 1
		f := FromReaderAt(&editedAfter{content: make([]byte, size)}, size, func(int64, int64, int64) {})
		f.racy = racy
		_, err := f.Load(t.Context())
		if racy != errors.Is(err, session.ErrSourceChanged) {
			t.Errorf("racy %v: error = %v", racy, err)
		}
	}
}

// TestLastCheckpoint checks at which checkpoint a resume starts.
func TestLastCheckpoint(t *testing.T) {
	const q = chunk.Granularity
	saved := Saved{Checkpoints: []chunk.Checkpoint{{Offset: q, CRC32C: 1}, {Offset: 2 * q, CRC32C: 2}}}
	for _, c := range []struct{ at, want int64 }{{0, 0}, {1, 0}, {q - 1, 0}, {q, q}, {q + 1, q}, {2 * q, 2 * q}, {3 * q, 2 * q}} {
		if got := saved.last(c.at); got.Offset != c.want {
			t.Errorf("last(%d) is at %d, want %d", c.at, got.Offset, c.want)
		}
	}
}
