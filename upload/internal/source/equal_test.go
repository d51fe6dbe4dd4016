package source

import (
	"compress/flate"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"gcsup/chunk"
	"gcsup/session"
)

// TestEqualOfAFileThatChanges checks that a file is not taken for the same as an object if
// it changes while it is compared.
func TestEqualOfAFileThatChanges(t *testing.T) {
	t.Parallel()
	data := make([]byte, rereadStep+1)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(data)
	for _, gzip := range []bool{false, true} {
		path := filepath.Join(t.TempDir(), "source")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		open := func(reread Reread) Resumable {
			src, err := chunk.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			var content Resumable
			content, err = NewFile(src, path, reread)
			if err != nil {
				t.Fatal(err)
			}
			if gzip {
				content = NewGzip(content.(*File), Compressor{flate.HuffmanOnly}, &chunk.Memory{}, 0) // ten times as fast as the default
			}
			t.Cleanup(content.Close)
			return content
		}
		silent := func(int64, int64, int64) {}
		whole, err := open(silent).Whole(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if same, err := open(silent).Equal(t.Context(), whole); !same || err != nil {
			t.Errorf("gzip %v: an unchanged file: %v, %v", gzip, same, err)
		}
		changing := open(func(n, offset, end int64) {
			if offset < end {
				if err := os.Chtimes(path, time.Time{}, time.Unix(1, 0)); err != nil {
					t.Error(err)
				}
			}
		})
		if same, err := changing.Equal(t.Context(), whole); same || !errors.Is(err, session.ErrSourceChanged) {
			t.Errorf("gzip %v: a file that changed: %v, %v", gzip, same, err)
		}
	}
}
