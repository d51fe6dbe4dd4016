//go:build unix

package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"gcsup/fakegcs"
	"gcsup/internal/cli/exit"
)

// TestStateKeyNeedsTheLock starts up in a directory that another process has locked. Only the process with the lock
// makes the key: another one could read a part of it, or make a second one.
func TestStateKeyNeedsTheLock(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fakegcs.Options{})
	lock, err := lockDir(w.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lock.Unlock() }()
	if code, messages := w.run("up", "--state=gs://state-bucket/uploads"); code != exit.Temporary {
		t.Errorf("exit code %d: %s", code, messages)
	}
	if _, err := os.Stat(filepath.Join(w.dir, "state.key")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the key: %v, want none", err)
	}
}

// TestStateKeyAfterKill makes a key in a directory where a killed process has begun to make one.
func TestStateKeyAfterKill(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f := upFlags{work: workFlags{state: stateFlags{url: "gs://state-bucket/uploads"}}}
	if err := os.WriteFile(filepath.Join(dir, "state.key.new"), []byte("partial"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		s, err := f.state(dir)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.aead(); err != nil {
			t.Error(err)
		}
	}
	if names, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(names) != 1 {
		t.Errorf("files %q, %v, want only the key", names, err)
	}
}
