package outbox

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"gcsup/internal/require"
	"gcsup/internal/sourcefile"
	"gcsup/internal/testsize"
)

// TestAppendedWhileRemoved removes and moves files while a program that opened the file for appending waits for the lease.
// The file gets its name back, with what was appended. A signal can interrupt the program while it waits: it then opens
// the name again, and finds no file.
func TestAppendedWhileRemoved(t *testing.T) {
	for _, to := range []string{"", "done"} {
		for tries := 1; !appendWhileRemoved(t, to); tries++ {
			if tries == 100 {
				t.Fatal("no append succeeds")
			}
		}
	}
}

// appendWhileRemoved reports whether the program could append.
func appendWhileRemoved(t *testing.T, to string) bool {
	base := testsize.DiskDir(t)
	dir := filepath.Join(base, "box")
	path := filepath.Join(dir, "f")
	box := disposer{disk: boxDisk(base), dir: dir, sync: osDisk{}.sync}
	if to != "" {
		box.to = filepath.Join(base, to)
	}
	for _, d := range []string{dir, filepath.Join(base, "done")} {
		require.NoError(t, os.Mkdir(d, 0o700))
	}
	require.NoError(t, os.WriteFile(path, powerOld, 0o600))
	src, err := sourcefile.OpenBelow(dir, "f")
	require.NoError(t, err)
	id, err := src.Identity()
	require.NoError(t, err)
	wrote := make(chan error, 1)
	err = src.Dispose(id, func(dir *os.Root, path string, info fs.FileInfo, unchanged func() error) error {
		go func() {
			f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
			if err == nil {
				_, err = f.Write(powerNew)
				_ = f.Close()
			}
			wrote <- err
		}()
		for writers := sourcefile.NoWriters; writers == sourcefile.NoWriters; {
			if _, writers, err = sourcefile.Inspect(path); err != nil {
				return err
			}
		}
		return box.dispose(dir, path, info, unchanged)
	})
	if errors.Is(<-wrote, fs.ErrNotExist) {
		return false
	}
	if judge(ending{left: err}) != altered {
		t.Errorf("Dispose = %v", err)
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, append(bytes.Clone(powerOld), powerNew...)) {
		t.Errorf("to %q: the file has %q, %v", to, got, err)
	}
	return true
}
