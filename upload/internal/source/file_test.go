package source

import (
	"bytes"
	"errors"
	"io"
	"testing"

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

var _ io.ReaderAt = (*editedAfter)(nil)
