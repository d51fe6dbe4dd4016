package sourcefile_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"gcsup/internal/require"
)

// overlay mounts an overlay whose upper directory is in dir, and returns the path of
// a file in it and of the same file in the upper directory.
func overlay(t *testing.T, dir string) (path, upper string) {
	t.Helper()
	dir, err := os.MkdirTemp(dir, "overlay")
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	for _, name := range []string{"lower", "upper", "work", "merged"} {
		require.NoError(t, os.Mkdir(filepath.Join(dir, name), 0o700))
	}
	merged := filepath.Join(dir, "merged")
	options := "lowerdir=" + filepath.Join(dir, "lower") + ",upperdir=" + filepath.Join(dir, "upper") + ",workdir=" + filepath.Join(dir, "work")
	if err := syscall.Mount("overlay", merged, "overlay", 0, options); err != nil {
		t.Skipf("mount: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(merged, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	path = filepath.Join(merged, "source")
	require.NoError(t, os.WriteFile(path, content(10), 0o600))
	return path, filepath.Join(dir, "upper", "source")
}

// TestSettleOnOverlay checks that a file of an overlay is Unsynced if its upper
// directory is in memory, and only then. A store to its pages changes no time, and
// fsync is no error.
func TestSettleOnOverlay(t *testing.T) {
	for _, dir := range []string{"/dev/shm", t.TempDir()} {
		t.Run(dir, func(t *testing.T) {
			path, upper := overlay(t, dir)
			want, err := open(t, upper).Settle(t.Context())
			require.NoError(t, err)
			got, err := open(t, path).Settle(t.Context())
			if err != nil || got.Unsynced != want.Unsynced || got.Racy {
				t.Errorf("Settle = %+v, %v, want Unsynced %v as for the upper directory", got, err, want.Unsynced)
			}
			if dir == "/dev/shm" && !got.Unsynced {
				t.Errorf("Settle = %+v, want Unsynced", got)
			}
		})
	}
}
