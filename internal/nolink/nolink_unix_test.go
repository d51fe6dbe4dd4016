//go:build unix

package nolink_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"gcsup/internal/nolink"
	"gcsup/internal/require"
)

// TestReplacedByPipe replaces a file by a named pipe after it was seen to be a file. Many file systems give the pipe the
// number of the removed file.
func TestReplacedByPipe(t *testing.T) {
	dir, err := nolink.Dir(tree(t), "dir")
	require.NoError(t, err)
	defer dir.Close()
	path := filepath.Join(dir.Name(), "file")
	nolink.OnLook(t, func() {
		_ = os.Remove(path)
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Error(err)
		}
	})
	f, err := nolink.Open(dir, "file")
	if err == nil {
		_ = f.Close()
	}
	if !errors.Is(err, nolink.ErrNotRegular) {
		t.Errorf("%v, want ErrNotRegular", err)
	}
}
