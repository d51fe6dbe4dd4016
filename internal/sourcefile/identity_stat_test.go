package sourcefile_test

import (
	"errors"
	"io/fs"
	"os"
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
	if err := os.WriteFile(path, []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	src, err := sourcefile.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	want, err := src.Identity()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := sourcefile.StatIdentity(path); err != nil || got != want {
		t.Errorf("StatIdentity = %+v, %v, want %+v", got, err, want)
	}
}
