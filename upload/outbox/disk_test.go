package outbox

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"gcsup/internal/nolink"
	"gcsup/internal/require"
)

// TestHold checks that a disk that holds a directory uses that one, whatever replaces it, and that others follow no link.
func TestHold(t *testing.T) {
	base := t.TempDir()
	path := filepath.Join(base, "dir", "file")
	outside := filepath.Join(base, "outside")
	for _, dir := range []string{filepath.Dir(path), outside} {
		require.NoError(t, errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(filepath.Join(dir, "file"), nil, 0o600)))
	}
	box := boxDisk(base)
	held, release, err := hold(box, filepath.Dir(path))
	require.NoError(t, err)
	defer release()
	if err := errors.Join(os.Rename(filepath.Dir(path), filepath.Join(base, "away")), os.Symlink("outside", filepath.Dir(path))); err != nil {
		t.Skip(err)
	}
	if err := box.remove(path); !errors.Is(err, nolink.ErrLink) {
		t.Errorf("a disk without the directory: %v, want ErrLink", err)
	}
	if err := errors.Join(held.rename(path, path+"2"), held.remove(path+"2"), held.sync(filepath.Dir(path))); err != nil {
		t.Errorf("a disk with the directory: %v", err)
	}
	if _, err := os.Stat(filepath.Join(outside, "file")); err != nil {
		t.Errorf("the link was followed: %v", err)
	}
	if _, _, err := hold(box, filepath.Dir(path)); !errors.Is(err, nolink.ErrLink) {
		t.Errorf("a link: %v, want ErrLink", err)
	}
}
