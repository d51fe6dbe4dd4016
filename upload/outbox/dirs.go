package outbox

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
)

// durableDirs makes directories durably, and remembers those that are durable. A directory that exists need
// not be: the process that made it may have been killed before its sync. The zero durableDirs is ready to use.
type durableDirs struct {
	mu    sync.Mutex
	known map[string]bool
}

// maxDurable bounds the directories that durableDirs remembers.
const maxDurable = 10_000

// makeAll makes dir, and the directories between it and base, which exists.
func (m *durableDirs) makeAll(d disk, base, dir string) error {
	if dir == base {
		return nil
	}
	info, err := d.lstat(dir)
	exists := err == nil && info.IsDir()
	if exists && m.isKnown(dir) {
		return nil
	}
	parent := filepath.Dir(dir)
	if parent == dir {
		return &fs.PathError{Op: "mkdir", Path: dir, Err: fs.ErrNotExist}
	}
	if err := m.makeAll(d, base, parent); err != nil {
		return err
	}
	if !exists {
		if err := makeDir(d, dir); err != nil {
			return err
		}
	}
	if err := d.sync(parent); err != nil {
		return err
	}
	m.remember(dir)
	return nil
}

// makeDir makes a directory, unless another process has made it.
func makeDir(d disk, dir string) error {
	err := d.mkdir(dir)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	info, err := d.lstat(dir)
	if err == nil && !info.IsDir() { // for example a symbolic link, which a scan does not follow
		err = &fs.PathError{Op: "mkdir", Path: dir, Err: syscall.ENOTDIR}
	}
	return err
}

func (m *durableDirs) isKnown(dir string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.known[dir]
}

func (m *durableDirs) remember(dir string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known == nil || len(m.known) >= maxDurable {
		m.known = map[string]bool{}
	}
	m.known[dir] = true
}

// makeAll makes a directory and its parents durably, as far as they do not exist.
func makeAll(d disk, dir string) error {
	base := dir
	for {
		if info, err := os.Stat(base); err == nil && info.IsDir() || filepath.Dir(base) == base {
			return new(durableDirs).makeAll(d, base, dir)
		}
		base = filepath.Dir(base)
	}
}
