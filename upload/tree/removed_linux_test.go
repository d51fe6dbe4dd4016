package tree

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"gcsup/internal/require"
)

// TestRemovedDirectory checks that a directory that is removed before it is read has no entries, or is
// reported if the options ask for that: its files may only have been moved.
func TestRemovedDirectory(t *testing.T) {
	t.Parallel()
	for _, report := range []bool{false, true} {
		dir := filepath.Join(t.TempDir(), "dir")
		require.NoError(t, os.Mkdir(dir, 0o700))
		root, err := os.OpenRoot(dir)
		require.NoError(t, err)
		defer root.Close()
		r, err := openReader(root, dir+"/", &Options{ReportLeftOut: report})
		require.NoError(t, err)
		defer r.close()
		require.NoError(t, os.Remove(dir))
		if report {
			_, err := r.next()
			if entry, ok := errors.AsType[*EntryError](err); !ok || entry.Kind != Vanished {
				t.Errorf("error %v, want that the directory vanished", err)
			}
		}
		if _, err := r.next(); err != io.EOF {
			t.Errorf("report %v: error %v, want io.EOF", report, err)
		}
	}
}
