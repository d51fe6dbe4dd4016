package tree

import (
	"os"
	"syscall"
	"testing"

	"gcsup/internal/require"
)

// Programs that run during a walk do not inherit its directories.
func TestDetachCloseOnExec(t *testing.T) {
	dir, err := os.Open(t.TempDir())
	require.NoError(t, err)
	f, err := detach(dir, "dir")
	require.NoError(t, err)
	defer f.Close()
	flags, _, errno := syscall.Syscall(syscall.SYS_FCNTL, f.Fd(), syscall.F_GETFD, 0)
	if errno != 0 || flags&syscall.FD_CLOEXEC == 0 {
		t.Errorf("flags %x (%v)", flags, errno)
	}
}
