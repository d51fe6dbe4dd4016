//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package sourcefile_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"gcsup/chunk"
	"gcsup/internal/require"
	"gcsup/internal/sourcefile"
)

// TestOpenNamedPipe checks that Open refuses a named pipe and does not open it.
// No process opens the other end, so that Open would block.
func TestOpenNamedPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	_, err := sourcefile.Open(path)
	if !errors.Is(err, chunk.ErrNotRegular) || !strings.Contains(err.Error(), "stream") {
		t.Errorf("Open = %v, want ErrNotRegular and what to do", err)
	}
}

func TestOpenSocket(t *testing.T) {
	// The path is relative, because the path of a socket may have at most 104
	// bytes.
	t.Chdir(t.TempDir())
	l, err := net.Listen("unix", "socket")
	require.NoError(t, err)
	defer l.Close()
	if _, err := sourcefile.Open("socket"); !errors.Is(err, chunk.ErrNotRegular) {
		t.Errorf("Open = %v, want ErrNotRegular", err)
	}
}

func TestSourceFollowsALink(t *testing.T) {
	data := content(10)
	path := file(t, data)
	link := path + ".link"
	require.NoError(t, os.Symlink(path, link))
	s := open(t, link)
	if identity(t, s) != identity(t, open(t, path)) {
		t.Error("the identities of a link and its file differ")
	}
	// A link that points to another file is a change.
	other := file(t, data)
	require.NoError(t, os.Remove(link))
	require.NoError(t, os.Symlink(other, link))
	if _, err := s.Identity(); !errors.Is(err, chunk.ErrChanged) {
		t.Errorf("Identity = %v, want ErrChanged", err)
	}
}

// waitForChangeTime waits until a change gets another change time than was,
// because the clock of a file system has ticks of some milliseconds.
func waitForChangeTime(t *testing.T, was chunk.Identity) {
	t.Helper()
	path := file(t, nil)
	for s := open(t, path); identity(t, s).ChangeTimeNS == was.ChangeTimeNS; {
		require.NoError(t, os.Chmod(path, 0o600))
	}
}

func TestSourceReplaced(t *testing.T) {
	data := content(10)
	dir := filepath.Dir(file(t, data))
	t.Chdir(dir)
	s := open(t, "source")
	was := identity(t, s)
	if was.Inode == 0 || was.ChangeTimeNS == 0 {
		t.Errorf("identity %+v, want an inode and a change time", was)
	}

	// The source stores an absolute path, so that a change of the working
	// directory has no effect.
	t.Chdir(t.TempDir())

	path := filepath.Join(dir, "source")
	waitForChangeTime(t, was)
	require.NoError(t, os.Remove(path))
	if got := sourcefile.Compare(was, identity(t, s)); got != sourcefile.ChangeTimeOnly {
		t.Errorf("Compare of a removed file = %v, want %v (it has one link less)", got, sourcefile.ChangeTimeOnly)
	}
	require.NoError(t, os.WriteFile(path, data, 0o600))
	if _, err := s.Identity(); !errors.Is(err, chunk.ErrChanged) {
		t.Errorf("Identity of a replaced file = %v, want ErrChanged", err)
	}
}

func TestSourceClosed(t *testing.T) {
	s := open(t, file(t, nil))
	if err := s.Close(); err != nil {
		t.Errorf("Close = %v", err)
	}
	if _, err := s.Identity(); !errors.Is(err, chunk.ErrRead) || !errors.Is(err, os.ErrClosed) {
		t.Errorf("Identity after Close = %v, want ErrRead and os.ErrClosed", err)
	}
}
