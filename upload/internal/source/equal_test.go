package source

import (
	"compress/flate"
	"errors"
	"os"
	"testing"
	"time"

	"gcsup/internal/require"
	"gcsup/session"
	"gcsup/upload/internal/stream"
)

// TestEqualOfAFileThatChanges checks that a file is not taken for the same as an object if
// it changes while it is compared.
func TestEqualOfAFileThatChanges(t *testing.T) {
	t.Parallel()
	data := random(rereadStep + 1)
	for _, zipped := range []bool{false, true} {
		path := write(t, data)
		open := func(reread Reread) Resumable {
			file := openFile(t, path, false)
			if file.reread = reread; zipped {
				return NewGzip(file, Compressor{flate.HuffmanOnly}, &stream.Memory{}, 0) // ten times as fast as the default
			}
			return file
		}
		whole, err := open(silent).Whole(t.Context())
		require.NoError(t, err)
		if same, err := open(silent).Equal(t.Context(), whole); !same || err != nil {
			t.Errorf("compressed %v: an unchanged file: %v, %v", zipped, same, err)
		}
		changing := open(func(_, offset, end int64) {
			if offset < end {
				if err := os.Chtimes(path, past, time.Unix(1, 0)); err != nil {
					t.Error(err)
				}
			}
		})
		if same, err := changing.Equal(t.Context(), whole); same || !errors.Is(err, session.ErrSourceChanged) {
			t.Errorf("compressed %v: a file that changed: %v, %v", zipped, same, err)
		}
	}
}
