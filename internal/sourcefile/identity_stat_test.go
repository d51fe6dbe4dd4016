package sourcefile_test

import (
	"errors"
	"io/fs"
	"path/filepath"
	"testing"

	"gcsup/chunk"
	"gcsup/internal/sourcefile"
)

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
