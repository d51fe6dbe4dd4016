package nolink_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"gcsup/internal/nolink"
	"gcsup/internal/require"
)

// tree makes a directory with in/dir/file, and links to what is in it and to what is outside.
func tree(t *testing.T) string {
	t.Helper()
	base := t.TempDir()
	for _, dir := range []string{"in/dir", "out"} {
		require.NoError(t, os.MkdirAll(filepath.Join(base, dir), 0o700))
	}
	for _, name := range []string{"in/dir/file", "out/file"} {
		require.NoError(t, os.WriteFile(filepath.Join(base, name), []byte(name), 0o600))
	}
	for link, target := range map[string]string{"in/inside": "dir", "in/outside": "../out", "in/dir/link": "file"} {
		if err := os.Symlink(target, filepath.Join(base, link)); err != nil {
			t.Skip(err)
		}
	}
	return filepath.Join(base, "in")
}

// TestOpen checks that no component that is a link is followed, wherever it leads.
func TestOpen(t *testing.T) {
	base := tree(t)
	require.NoError(t, os.Symlink(base, base+"-link"))
	for _, tt := range []struct {
		base, dir, file string
		want            error
	}{
		{base, "dir", "file", nil},
		{base + "-link", "dir", "file", nil}, // the caller chose it
		{base, "", "dir", nolink.ErrNotRegular},
		{base, "inside", "file", nolink.ErrLink},
		{base, "outside", "file", nolink.ErrLink},
		{base, "dir", "link", nolink.ErrLink},
		{base, filepath.Join("dir", "file"), "file", nolink.ErrNotDirectory},
		{base, "none", "file", fs.ErrNotExist},
		{base, "dir", "none", fs.ErrNotExist},
		{base, "dir", "../dir/file", fs.ErrInvalid},
	} {
		err := func() error {
			dir, err := nolink.Dir(tt.base, tt.dir)
			if err != nil {
				return err
			}
			defer dir.Close()
			f, err := nolink.Open(dir, tt.file)
			if err != nil {
				return err
			}
			return f.Close()
		}()
		if !errors.Is(err, tt.want) || (err == nil) != (tt.want == nil) {
			t.Errorf("%s, %s: %v, want %v", tt.dir, tt.file, err, tt.want)
		}
	}
	if dir, err := nolink.Dir(base, filepath.Join("..", "out")); err == nil {
		_ = dir.Close()
		t.Error("a path that leads out of the base is opened")
	}
}

// TestReplacedByLink replaces a directory by a link, and back, while it is opened. The link is never followed, even
// though it leads to a directory inside the base.
func TestReplacedByLink(t *testing.T) {
	base := tree(t)
	require.NoError(t, os.Mkdir(filepath.Join(base, "other"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(base, "other", "file"), []byte("other"), 0o600))
	var stop atomic.Bool
	done := make(chan error)
	go func() {
		var err error
		for err == nil && !stop.Load() {
			err = errors.Join(
				os.Rename(filepath.Join(base, "dir"), filepath.Join(base, "away")), os.Symlink("other", filepath.Join(base, "dir")),
				os.Remove(filepath.Join(base, "dir")), os.Rename(filepath.Join(base, "away"), filepath.Join(base, "dir")))
		}
		done <- err
	}()
	opened, refused := 0, 0
	for opened < 200 || refused < 200 {
		dir, err := nolink.Dir(base, "dir")
		if err != nil {
			refused++
			continue
		}
		if _, err := dir.Lstat("link"); err != nil { // which other does not have
			t.Errorf("the link was followed: %v", err)
			opened, refused = 200, 200
		}
		_ = dir.Close()
		opened++
	}
	stop.Store(true)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestReplacedAfterLook replaces a directory or a file by a link after it was seen to be none.
func TestReplacedAfterLook(t *testing.T) {
	for _, name := range []string{"dir", filepath.Join("dir", "file")} {
		base := tree(t)
		require.NoError(t, errors.Join(os.Mkdir(filepath.Join(base, "other"), 0o700), os.WriteFile(filepath.Join(base, "other", "file"), nil, 0o600)))
		target := map[string]string{"dir": "other", filepath.Join("dir", "file"): filepath.Join("..", "other", "file")}[name]
		nolink.OnLook(t, func() {
			_ = os.Rename(filepath.Join(base, name), filepath.Join(base, "away"))
			_ = os.Symlink(target, filepath.Join(base, name))
		})
		dir, err := nolink.Dir(base, "dir")
		if err == nil {
			var f *os.File
			if f, err = nolink.Open(dir, "file"); err == nil {
				_ = f.Close()
			}
			_ = dir.Close()
		}
		if !errors.Is(err, nolink.ErrLink) {
			t.Errorf("%s: %v, want ErrLink", name, err)
		}
	}
}
