package state_test

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"gcsup/internal/require"
	"gcsup/internal/testsize"
	"gcsup/session/state"
	"gcsup/session/state/storetest"
)

// TestDirContract runs the suite of package storetest on a Dir: with processes that
// are killed, and with handles in one process, for pointers and the race detector.
func TestDirContract(t *testing.T) {
	t.Run("processes", func(t *testing.T) {
		if testing.Short() {
			t.Skip("starts a process for each handle")
		}
		storetest.Run(t, func(t *testing.T) storetest.Place {
			path := foreignDir(t)
			return dirPlace(path, func() storetest.Process { return storetest.Start(t, path) })
		})
	})
	t.Run("handles", func(t *testing.T) {
		if testsize.Full(0, 1) == 1 {
			t.Skip("the same checks as with processes")
		}
		storetest.Run(t, func(t *testing.T) storetest.Place {
			path := foreignDir(t)
			return dirPlace(path, func() storetest.Process {
				h := &dirHandle{Dir: openDir(t, path)}
				return storetest.Process{Store: h, Kill: h.die}
			})
		})
	})
}

// foreignDir returns a state directory that also has files which are not saved
// uploads.
func foreignDir(t *testing.T) string {
	t.Helper()
	path := newDir(t)
	_ = openDir(t, path).Close()
	for _, name := range []string{"x.json.tmp", "x.tmp", "y.lock", "z.damaged", "a b.json", ".json", "notes.txt"} {
		require.NoError(t, os.WriteFile(filepath.Join(path, name), []byte("x"), 0o600))
	}
	return path
}

func dirPlace(path string, open func() storetest.Process) storetest.Place {
	return storetest.Place{
		Open:    open,
		Put:     func(id string, data []byte) error { return os.WriteFile(filepath.Join(path, id+".json"), data, 0o600) },
		Without: []storetest.Feature{storetest.Leases},
	}
}

// dirHandle is a Dir that stands for a process. Its death releases the locks, as the
// kernel does, and fails all calls.
type dirHandle struct {
	*state.Dir
	mu    sync.Mutex
	locks []func()
}

func (h *dirHandle) Lock(ctx context.Context, id string) (unlock func(), err error) {
	unlock, err = h.Dir.Lock(ctx, id)
	h.mu.Lock()
	defer h.mu.Unlock()
	if err == nil {
		h.locks = append(h.locks, unlock)
	}
	return unlock, err
}

func (h *dirHandle) die() {
	_ = h.Close()
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, unlock := range h.locks {
		unlock()
	}
}
