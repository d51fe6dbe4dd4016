package sourcefile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"gcsup/chunk"
	"gcsup/internal/require"
	"gcsup/internal/sourcefile"
)

// TestInspect checks the identity, and that a writer is found.
func TestInspect(t *testing.T) {
	path := file(t, content(10))
	inspect := func(want sourcefile.Writers) {
		t.Helper()
		id, writers, err := sourcefile.Inspect(path)
		if now, serr := sourcefile.StatIdentity(path); err != nil || serr != nil || id != now || writers != want {
			t.Errorf("Inspect = %+v, %v, %v, want %+v, %v", id, writers, err, now, want)
		}
	}
	inspect(sourcefile.NoWriters)
	w, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	require.NoError(t, err)
	inspect(sourcefile.HasWriters)
	if _, err := w.Write(content(3)); err != nil {
		t.Fatal(err)
	}
	require.NoError(t, w.Close())
	inspect(sourcefile.NoWriters)
	if _, _, err := sourcefile.Inspect(filepath.Dir(path)); !errors.Is(err, chunk.ErrNotRegular) {
		t.Errorf("a directory: %v", err)
	}
	if _, _, err := sourcefile.Inspect(path + "x"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}

// TestDispose checks that only an unchanged file is disposed of, and that it cannot be opened for
// writing meanwhile.
func TestDispose(t *testing.T) {
	path := file(t, content(10))
	s := open(t, path)
	id := identity(t, s)
	moved := path + ".moved"
	err := s.Dispose(id, func(_ *os.Root, path string, info fs.FileInfo, unchanged func() error) error {
		if _, writers, err := sourcefile.Inspect(path); writers != sourcefile.NoWriters || err != nil {
			t.Errorf("Inspect: %v, %v", writers, err)
		}
		if err := os.Rename(path, moved); err != nil {
			return err
		}
		if now, err := os.Lstat(moved); err != nil || !os.SameFile(info, now) {
			t.Errorf("another file was moved: %v", err)
		}
		if err := unchanged(); err != nil {
			t.Error(err)
		}
		w, err := os.OpenFile(moved, os.O_WRONLY|syscall.O_NONBLOCK, 0)
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			t.Errorf("the file can be opened for writing: %v", err)
			_ = w.Close()
		}
		if err := unchanged(); err != nil {
			t.Errorf("after a process has tried to open it: %v", err)
		}
		return fs.ErrExist
	})
	if !errors.Is(err, fs.ErrExist) {
		t.Errorf("Dispose = %v, want the error of the function", err)
	}
	s = open(t, moved)
	if err := s.Dispose(id, func(*os.Root, string, fs.FileInfo, func() error) error { t.Error("a changed file"); return nil }); !errors.Is(err, chunk.ErrChanged) {
		t.Errorf("Dispose of a file that was renamed: %v", err)
	}
}
