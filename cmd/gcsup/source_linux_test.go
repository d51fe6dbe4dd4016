package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"unsafe"

	"gcsup/internal/cli/exit"
	"gcsup/internal/require"
	"gcsup/session"
)

// TestUnreadableSource checks that an unreadable file is refused before any
// request. The test's thread drops root's capability to read every file.
func TestUnreadableSource(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil { // so that the file can be seen
		t.Fatal(err)
	}
	path := filepath.Join(dir, "secret")
	require.NoError(t, os.WriteFile(path, []byte("x"), 0))
	result := make(chan error)
	go func() {
		runtime.LockOSThread() // it ends with the goroutine
		if os.Getuid() == 0 {
			// https://man7.org/linux/man-pages/man2/capset.2.html
			header := struct{ version, pid uint32 }{version: 0x20080522}
			var none [2]struct{ effective, permitted, inheritable uint32 }
			if _, _, errno := syscall.RawSyscall(syscall.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&none)), 0); errno != 0 {
				result <- errno
				return
			}
		}
		result <- sourceError(checkSource(path, session.Spec{Bucket: "bkt", Object: "obj"}), path)
	}()
	err := <-result
	if !errors.Is(err, fs.ErrPermission) || exit.Classify(err).Code != exit.NoInput {
		t.Errorf("checkSource = %v, want a permission error with exit code %d", err, exit.NoInput)
	}
}
