package outbox

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"gcsup/internal/require"
)

// TestStatusOfOthers checks what ReadStatus returns if the process that runs the outbox has not saved its status.
func TestStatusOfOthers(t *testing.T) {
	dir, source := t.TempDir(), filepath.Join(t.TempDir(), "source")
	old := time.Now().Add(-24 * time.Hour)
	require.NoError(t, errors.Join(os.WriteFile(source, []byte("x"), 0o600), os.Chtimes(source, old, old), Put(dir, source, "name")))
	check := func(what string, running, unsaved, stale bool) {
		t.Helper()
		s, err := ReadStatus(dir)
		if err != nil || (s.Running != nil) != running || s.Unsaved != unsaved || s.Stale(time.Now()) != stale || s.Backlog != (Count{1, 1}) {
			t.Errorf("%s: %+v, %v", what, s, err)
		}
		if age := time.Since(s.Oldest); age > time.Hour {
			t.Errorf("%s: the oldest file has waited for %v, like its source", what, age)
		}
	}
	check("no process", false, false, false)
	unlock, err := lock(dir)
	require.NoError(t, err)
	defer unlock()
	require.NoError(t, os.WriteFile(filepath.Join(dir, stateDir, statusFile), []byte(`{"time":"2020-01-01T00:00:00Z","backlog":{"files":7,"bytes":7}}`), 0o600))
	check("a process that begins, after another one", true, false, true)
	lockPath := filepath.Join(dir, stateDir, lockFile)
	require.NoError(t, os.Truncate(lockPath, 0)) // the disk is full
	open, err := openOwn(dir, stateDir)
	require.NoError(t, err)
	defer open.Close()
	touchLock(open)
	check("a process that can save nothing", true, true, false)
	require.NoError(t, os.Chtimes(lockPath, old, old))
	if s, err := ReadStatus(dir); err != nil || s.Unsaved || !s.Stale(time.Now()) {
		t.Errorf("a process that hangs: %+v, %v", s, err)
	}
}
