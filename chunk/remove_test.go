package chunk_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"gcsup/chunk"
)

// TestRemove checks that only the file that was read is removed.
func TestRemove(t *testing.T) {
	rewrite := func(t *testing.T, path string) {
		t.Helper()
		if err := os.WriteFile(path, content(11), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		name   string
		change func(t *testing.T, path string)
		want   error // nil if the file is removed
	}{
		{"unchanged", func(*testing.T, string) {}, nil},
		{"changed", rewrite, chunk.ErrChanged},
		{"replaced", func(t *testing.T, path string) {
			rewrite(t, path+".new")
			if err := os.Rename(path+".new", path); err != nil {
				t.Fatal(err)
			}
		}, chunk.ErrChanged},
		{"moved away", func(t *testing.T, path string) {
			if err := os.Rename(path, path+".old"); err != nil {
				t.Fatal(err)
			}
		}, fs.ErrNotExist},
		{"replaced by a link to it", func(t *testing.T, path string) {
			if err := os.Rename(path, path+".old"); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(path+".old", path); err != nil {
				t.Skip(err)
			}
		}, chunk.ErrNotRegular},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := file(t, content(10))
			s := open(t, path)
			id := identity(t, s)
			tt.change(t, path)
			if tt.name != "changed" {
				id = identityAfter(s, id)
			}
			before := names(t, filepath.Dir(path))
			if err := s.Remove(id); !errors.Is(err, tt.want) || (err == nil) != (tt.want == nil) {
				t.Errorf("Remove = %v, want %v", err, tt.want)
			}
			if after := names(t, filepath.Dir(path)); after-before != 0 && tt.want != nil {
				t.Errorf("%d files are left of %d", after, before)
			}
			if _, err := os.Lstat(path); tt.want == nil && !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the file is not removed: %v", err)
			}
			if _, err := s.ReadAt(make([]byte, 1), 0); !errors.Is(err, os.ErrClosed) {
				t.Errorf("the Source is not closed: %v", err)
			}
		})
	}
}

// identityAfter returns the identity of s after a rename, which changes the change time on
// some file systems, or was.
func identityAfter(s *chunk.Source, was chunk.Identity) chunk.Identity {
	if id, err := s.Identity(); err == nil {
		return id
	}
	return was
}

// names returns how many files are in dir.
func names(t *testing.T, dir string) int {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}
