//go:build unix

package state_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"gcsup/internal/require"
	"gcsup/session/state"
)

func mode(t *testing.T, path string) os.FileMode {
	t.Helper()
	info, err := os.Lstat(path)
	require.NoError(t, err)
	return info.Mode()
}

// TestModes checks that only the owner has access to the files, with any umask.
func TestModes(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0))
	d, saved, path := oneSaved(t)
	unlock, err := d.Lock(t.Context(), saved.ID)
	require.NoError(t, err)
	defer unlock()
	for p, want := range map[string]os.FileMode{
		path: 0o600, strings.TrimSuffix(path, ".json") + ".lock": 0o600,
		filepath.Dir(path): 0o700 | os.ModeDir, filepath.Dir(filepath.Dir(path)): 0o700 | os.ModeDir,
	} {
		if got := mode(t, p); got != want {
			t.Errorf("%s has mode %v, want %v", p, got, want)
		}
	}
}

// TestLaxDirectoryIsRefused checks that OpenDir refuses a directory in which
// other users could create files.
func TestLaxDirectoryIsRefused(t *testing.T) {
	for _, perm := range []os.FileMode{0o777, 0o770, 0o720, 0o702, 0o1777} {
		dir := t.TempDir()
		require.NoError(t, os.Chmod(dir, perm))
		if _, err := state.OpenDir(dir); !errors.Is(err, state.ErrInsecurePermissions) {
			t.Errorf("%v: %v, want ErrInsecurePermissions", perm, err)
		}
		if got := mode(t, dir).Perm(); got != perm.Perm() {
			t.Errorf("%v became %v", perm, got)
		}
	}
}

// TestLaxFileIsRefused checks that Load refuses a saved upload that other users could
// read or write, and that the file stays.
func TestLaxFileIsRefused(t *testing.T) {
	d, saved, path := oneSaved(t)
	for _, perm := range []os.FileMode{0o604, 0o602, 0o601, 0o640, 0o620, 0o610, 0o644, 0o666, 0o777} {
		require.NoError(t, os.Chmod(path, perm))
		_, err := d.Load(t.Context(), saved.ID)
		if !errors.Is(err, state.ErrInsecurePermissions) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "chmod 600") {
			t.Errorf("mode %v: %v, want ErrInsecurePermissions, and what to do", perm, err)
		}
	}
	for _, perm := range []os.FileMode{0o600, 0o400} {
		require.NoError(t, os.Chmod(path, perm))
		if _, err := d.Load(t.Context(), saved.ID); err != nil {
			t.Errorf("mode %v: %v", perm, err)
		}
	}
}

// TestNotAPlainFile checks that Load refuses symbolic links, even to a valid
// saved upload, directories and pipes, and that it does not wait for the writer of a
// pipe.
func TestNotAPlainFile(t *testing.T) {
	for name, plant := range map[string]func(path, good string) error{
		"a link in the directory":     func(path, good string) error { return os.Symlink(filepath.Base(good), path) },
		"a link out of the directory": func(path, _ string) error { return os.Symlink("/etc/hostname", path) },
		"an absolute link":            func(path, good string) error { return os.Symlink(good, path) },
		"a dangling link":             func(path, _ string) error { return os.Symlink("nowhere", path) },
		"a directory":                 func(path, _ string) error { return os.Mkdir(path, 0o700) },
		"a pipe":                      func(path, _ string) error { return syscall.Mkfifo(path, 0o600) },
	} {
		d, saved, path := oneSaved(t)
		good := filepath.Join(filepath.Dir(path), "good")
		require.NoError(t, os.Rename(path, good))
		require.NoError(t, plant(path, good))
		if _, err := d.Load(t.Context(), saved.ID); !errors.Is(err, state.ErrInsecurePermissions) {
			t.Errorf("%s: Load: %v, want ErrInsecurePermissions", name, err)
		}
		lock := strings.TrimSuffix(path, ".json") + ".lock"
		require.NoError(t, plant(lock, good))
		before, err := os.ReadFile(good)
		require.NoError(t, err)
		if unlock, err := d.Lock(t.Context(), saved.ID); !errors.Is(err, state.ErrInsecurePermissions) {
			t.Errorf("%s: Lock: %v, want ErrInsecurePermissions", name, err)
			if err == nil {
				unlock()
			}
		}
		if after, err := os.ReadFile(good); err != nil || string(after) != string(before) {
			t.Errorf("%s: Lock wrote through the link: %q, %v", name, after, err)
		}
	}
}

// TestSaveReplacesLinks checks that Save replaces a symbolic link, and does not change its target. A temporary file that is
// left, even one that cannot be written, does not stop it, and is removed.
func TestSaveReplacesLinks(t *testing.T) {
	d, saved, path := oneSaved(t)
	victim := filepath.Join(t.TempDir(), "victim")
	require.NoError(t, os.WriteFile(victim, []byte("precious"), 0o600))
	for _, link := range []string{path, strings.TrimSuffix(path, ".json") + ".tmp"} {
		_ = os.Remove(link)
		require.NoError(t, os.Symlink(victim, link))
	}
	require.NoError(t, d.Save(t.Context(), saved))
	if data, err := os.ReadFile(victim); err != nil || string(data) != "precious" {
		t.Errorf("the target of the link is %q, %v", data, err)
	}
	if !mode(t, path).IsRegular() {
		t.Error("the Upload is still a link")
	}
	require.NoError(t, os.WriteFile(strings.TrimSuffix(path, ".json")+".tmp", []byte("half"), 0o400))
	saved.Committed++
	require.NoError(t, d.Save(t.Context(), saved))
	if got, err := d.Load(t.Context(), saved.ID); err != nil || !same(t, got, saved) || len(files(t, filepath.Dir(path))) != 1 {
		t.Errorf("Load = %v, %v; files %v", got, err, files(t, filepath.Dir(path)))
	}
}

// TestOthersFiles checks that files and directories of another user are
// refused. It needs chown, which only root may call. For any other user, the
// refused chown shows that no user can create a file that belongs to another
// one.
func TestOthersFiles(t *testing.T) {
	d, saved, path := oneSaved(t)
	other := 65534 // the user nobody, which may run this test
	if other == os.Geteuid() {
		other--
	}
	if err := os.Chown(path, other, other); err != nil {
		// EINVAL: a user namespace without another user.
		if !errors.Is(err, fs.ErrPermission) && !errors.Is(err, syscall.EINVAL) {
			t.Fatal(err)
		}
		return
	}
	if _, err := d.Load(t.Context(), saved.ID); !errors.Is(err, state.ErrInsecurePermissions) || !strings.Contains(err.Error(), "another user") {
		t.Errorf("Load of another's file: %v, want ErrInsecurePermissions", err)
	}
	dir := t.TempDir()
	require.NoError(t, os.Chown(dir, other, other))
	opened, err := state.OpenDir(dir)
	if !errors.Is(err, state.ErrInsecurePermissions) || !strings.Contains(err.Error(), dir) {
		t.Errorf("OpenDir of another's directory: %v, want ErrInsecurePermissions", err)
	}
	if err == nil {
		_ = opened.Close()
	}
}

// TestHugeFile checks that Load does not read a file that is too large for a
// saved upload.
func TestHugeFile(t *testing.T) {
	d, saved, path := oneSaved(t)
	require.NoError(t, os.Truncate(path, 1<<30))
	if _, err := d.Load(t.Context(), saved.ID); !errors.Is(err, state.ErrInsecurePermissions) {
		t.Errorf("Load: %v, want ErrInsecurePermissions", err)
	}
}
