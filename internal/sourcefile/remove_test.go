package sourcefile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"gcsup/chunk"
	"gcsup/internal/require"
	"gcsup/internal/sourcefile"
)

// TestRemove checks that only the file that was read is removed.
func TestRemove(t *testing.T) {
	rewrite := func(t *testing.T, path string) {
		t.Helper()
		require.NoError(t, os.WriteFile(path, content(11), 0o600))
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
			require.NoError(t, os.Rename(path+".new", path))
		}, chunk.ErrChanged},
		{"moved away", func(t *testing.T, path string) {
			require.NoError(t, os.Rename(path, path+".old"))
		}, fs.ErrNotExist},
		{"replaced by a link to it", func(t *testing.T, path string) {
			require.NoError(t, os.Rename(path, path+".old"))
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
func identityAfter(s *sourcefile.File, was chunk.Identity) chunk.Identity {
	if id, err := s.Identity(); err == nil {
		return id
	}
	return was
}

// names returns how many files are in dir.
func names(t *testing.T, dir string) int {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	return len(entries)
}

// TestRemoveGivesNameBack checks that a file that changes after it was set aside gets its name back, and that it
// replaces no new file of that name.
func TestRemoveGivesNameBack(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the file is closed when it is removed")
	}
	for _, again := range []bool{false, true} {
		path := file(t, content(10))
		dir, name := filepath.Split(path)
		aside := filepath.Join(dir, sourcefile.Aside(name))
		s := open(t, path)
		id := identity(t, s)
		s.OnIdentity(func() {
			f, err := os.OpenFile(aside, os.O_WRONLY|os.O_APPEND, 0)
			if err != nil {
				return // it still has its name
			}
			defer f.Close()
			if _, err := f.WriteString("more"); err != nil {
				t.Error(err)
			}
			if again {
				if err := os.WriteFile(path, []byte("new"), 0o600); err != nil {
					t.Error(err)
				}
			}
		})
		s.WithoutLeases() // otherwise the program waits
		if err := s.Remove(id); !errors.Is(err, chunk.ErrChanged) || errors.Is(err, fs.ErrExist) != again {
			t.Errorf("Remove = %v", err)
		}
		old, missing := path, aside
		if again {
			old, missing = aside, ""
			if got, err := os.ReadFile(path); err != nil || string(got) != "new" {
				t.Errorf("the new file has %q, %v", got, err)
			}
		}
		if info, err := os.Stat(old); err != nil || info.Size() <= 10 {
			t.Errorf("%s: %v, %v", old, info, err)
		}
		if _, err := os.Lstat(missing); err == nil {
			t.Errorf("%s is left", missing)
		}
	}
}

// TestRemoveKeepsEarlierAside checks that a file that a killed process set aside is not replaced.
func TestRemoveKeepsEarlierAside(t *testing.T) {
	path := file(t, content(10))
	aside := filepath.Join(filepath.Dir(path), sourcefile.Aside(filepath.Base(path)))
	require.NoError(t, os.WriteFile(aside, []byte("earlier"), 0o600))
	s := open(t, path)
	if err := s.Remove(identity(t, s)); err == nil {
		t.Error("the file is removed")
	}
	if got, err := os.ReadFile(aside); err != nil || string(got) != "earlier" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
}

// TestAside checks the names of files that are being removed.
func TestAside(t *testing.T) {
	for _, name := range []string{"a", ".a", "a b", strings.Repeat("x", 239)} {
		if got, ok := sourcefile.FromAside(sourcefile.Aside(name)); !ok || got != name {
			t.Errorf("FromAside(Aside(%q)) = %q, %v", name, got, ok)
		}
	}
	long := sourcefile.Aside(strings.Repeat("ä", 127) + "x")
	if _, ok := sourcefile.FromAside(long); !ok || len(long) > 255 || !utf8.ValidString(long) {
		t.Errorf("a long name: %q, %d bytes", long, len(long))
	}
	for _, name := range []string{"", "a", ".gcsup-removing", "..gcsup-removing", "a.gcsup-removing"} {
		if got, ok := sourcefile.FromAside(name); ok {
			t.Errorf("FromAside(%q) = %q", name, got)
		}
	}
}

// TestOpenBelow checks that a file is opened and removed only by a path without links below the base, even if a
// directory is replaced by a link after it was opened.
func TestOpenBelow(t *testing.T) {
	base := t.TempDir()
	path := filepath.Join(base, "dir", "file")
	require.NoError(t, errors.Join(os.Mkdir(filepath.Dir(path), 0o700), os.WriteFile(path, content(10), 0o600)))
	if err := errors.Join(os.Symlink("dir", filepath.Join(base, "link")), os.Symlink("file", path+"-link")); err != nil {
		t.Skip(err)
	}
	for _, rel := range []string{"link/file", "dir/file-link", "dir", "../" + filepath.Base(base) + "/dir/file"} {
		if s, err := sourcefile.OpenBelow(base, filepath.FromSlash(rel)); err == nil {
			s.Close()
			t.Errorf("%s is opened", rel)
		} else if rel != "../"+filepath.Base(base)+"/dir/file" && !errors.Is(err, chunk.ErrNotRegular) {
			t.Errorf("%s: %v", rel, err)
		}
	}
	if _, err := sourcefile.OpenBelow(base, filepath.Join("dir", "none")); !errors.Is(err, fs.ErrNotExist) || !errors.Is(err, chunk.ErrOpen) {
		t.Errorf("a missing file: %v", err)
	}
	for _, by := range []string{"a link", "another directory", "nothing"} {
		s, err := sourcefile.OpenBelow(base, filepath.Join("dir", "file"))
		require.NoError(t, err)
		id := identity(t, s)
		dir, moved := filepath.Join(base, "dir"), filepath.Join(base, "moved")
		swapped := by != "nothing"
		if swapped {
			err = os.Rename(dir, moved)
		}
		switch by {
		case "a link":
			err = errors.Join(err, os.Symlink("moved", dir))
		case "another directory":
			err = errors.Join(err, os.Mkdir(dir, 0o700), os.WriteFile(path, content(10), 0o600))
		}
		require.NoError(t, err)
		err = s.Remove(id)
		if (err != nil) != swapped {
			t.Errorf("the directory was replaced by %s: %v", by, err)
		}
		if swapped {
			for _, name := range []string{path, filepath.Join(moved, "file")} {
				if _, err := os.Stat(name); err != nil {
					t.Errorf("the directory was replaced by %s: %v", by, err)
				}
			}
			require.NoError(t, errors.Join(os.RemoveAll(dir), os.Rename(moved, dir)))
		}
	}
}
