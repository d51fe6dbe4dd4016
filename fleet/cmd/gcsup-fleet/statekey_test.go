//go:build unix

package main

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"gcsup/fakegcs"
	"gcsup/internal/cli/exit"
	"gcsup/internal/cli/process"
	"gcsup/internal/require"
)

// TestStateKeyNeedsTheLock starts up in a directory that another process has locked. Only the process with the lock
// makes the key: another one could read a part of it, or make a second one.
func TestStateKeyNeedsTheLock(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fakegcs.Options{})
	lock, err := lockDir(w.dir)
	require.NoError(t, err)
	defer func() { _ = lock.Unlock() }()
	w.wants(exit.Temporary, "", "up", "--state=gs://state-bucket/uploads")
	if _, err := os.Stat(filepath.Join(w.dir, "state.key")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the key: %v, want none", err)
	}
}

// TestStateKeyAfterKill makes a key in a directory where a killed process has begun to make one: the partial file
// is never taken for the key, and the second call has the key of the first.
func TestStateKeyAfterKill(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f := upFlags{work: workFlags{state: stateFlags{url: "gs://state-bucket/uploads"}}}
	require.NoError(t, os.WriteFile(filepath.Join(dir, ".gcsup-1"+process.TempSuffix), []byte("partial"), 0o600))
	var keys [2][]byte
	for i := range keys {
		s, err := f.state(dir)
		require.NoError(t, err)
		if _, err := s.aead(); err != nil {
			t.Error(err)
		}
		keys[i], err = os.ReadFile(s.keyFile)
		require.NoError(t, err)
	}
	if !bytes.Equal(keys[0], keys[1]) {
		t.Error("the second call made another key")
	}
}
