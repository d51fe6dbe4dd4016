//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package sourcefile_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"gcsup/chunk"
	"gcsup/internal/require"
	"gcsup/internal/sourcefile"
)

// mapped maps a file, shared and writable.
func mapped(t *testing.T, path string) []byte {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	defer f.Close()
	info, err := f.Stat()
	require.NoError(t, err)
	m, err := syscall.Mmap(int(f.Fd()), 0, int(info.Size()), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		t.Skipf("mmap: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Munmap(m) })
	return m
}

// TestSettleShowsAStoreToADirtyPage checks that no page is dirty after Settle.
// A store to a dirty page changes no time of the file.
func TestSettleShowsAStoreToADirtyPage(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("checked on Linux only")
	}
	path := file(t, content(256<<10))
	m := mapped(t, path)
	m[0]++
	s := open(t, path)
	was := identity(t, s)
	m[0]++
	if was != identity(t, s) {
		t.Log("the page was written back between two stores")
	}
	settled, err := s.Settle(t.Context())
	require.NoError(t, err)
	if settled.Unsynced {
		t.Skip("the file system does not support fsync")
	}
	m[0]++
	if got := sourcefile.Compare(settled.Identity, identity(t, s)); got != sourcefile.Different {
		t.Errorf("Compare after a store = %v, want %v", got, sourcefile.Different)
	}
}

// TestSettleOnTmpfs checks that Settle reports a file in memory as Unsynced.
// Its pages are never written back.
func TestSettleOnTmpfs(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("Linux only")
	}
	dir, err := os.MkdirTemp("/dev/shm", "gcsup")
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	path := filepath.Join(dir, "source")
	require.NoError(t, os.WriteFile(path, content(10), 0o600))
	if settled, err := open(t, path).Settle(t.Context()); err != nil || !settled.Unsynced || settled.Racy {
		t.Errorf("Settle = %+v, %v, want Unsynced", settled, err)
	}
}

// TestSettleFsyncErrors checks that a file system without fsync is no error,
// and that a disk failure is one.
func TestSettleFsyncErrors(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want bool // refused
	}{
		{nil, false}, {syscall.EINVAL, true}, {syscall.ENOTSUP, true}, {syscall.EROFS, true}, {syscall.ENOSYS, true}, {syscall.EACCES, true},
		{syscall.EIO, false}, {syscall.ENOSPC, false}, {syscall.EDQUOT, false},
	} {
		s := open(t, file(t, content(10)))
		s.SetWriteBack(func(*os.File) error { return tt.err })
		settled, err := s.Settle(t.Context())
		switch {
		case tt.err == nil || tt.want:
			if err != nil || settled.Unsynced != tt.want {
				t.Errorf("fsync gives %v: Settle = %+v, %v, want Unsynced %v", tt.err, settled, err, tt.want)
			}
		case !errors.Is(err, chunk.ErrRead) || !errors.Is(err, tt.err):
			t.Errorf("fsync gives %v: error = %v, want ErrRead and the cause", tt.err, err)
		}
	}
}
