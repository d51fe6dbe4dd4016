package spool

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"gcsup/chunk"
	"gcsup/session/state"
)

// leftAfter is the age at which the remains of a stream that did not end are removed: the
// lifetime of its session.
const leftAfter = 7 * 24 * time.Hour

// Remove removes the spool of a stream. It is no error if there is none. If a process has it, the
// error wraps [state.ErrInUse].
func Remove(ctx context.Context, dir, id string) error {
	_, err := os.Lstat(filepath.Join(dir, id))
	if _, lerr := os.Lstat(filepath.Join(dir, id+".lock")); errors.Is(err, fs.ErrNotExist) && errors.Is(lerr, fs.ErrNotExist) {
		return nil // and dir need not exist
	}
	_, release, err := lock(ctx, dir, id)
	if err != nil {
		return err
	}
	defer release()
	return removeLocked(dir, id)
}

// removeLocked removes the spool of a stream whose lock the caller holds.
func removeLocked(dir, id string) error {
	path := filepath.Join(dir, id)
	root, err := os.OpenRoot(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("spool: %w", err)
	}
	defer root.Close()
	return removeFiles(rootDisk{root}, path)
}

// Ended returns the size and the CRC32C of a stream that has ended, or nil. It needs no lock.
func Ended(dir, id string) (*chunk.Checkpoint, error) {
	root, err := os.OpenRoot(filepath.Join(dir, id))
	if err != nil {
		return nil, fmt.Errorf("spool: %w", err)
	}
	defer root.Close()
	return readEnd(rootDisk{root})
}

// Whole reports whether a stream has ended and all its bytes are there, so that another session can send
// them. It needs no lock.
func Whole(dir, id string) (bool, error) {
	path := filepath.Join(dir, id)
	root, err := os.OpenRoot(path)
	if err != nil {
		return false, fmt.Errorf("spool: %w", err)
	}
	s := newSpool(rootDisk{root}, path, 0, func() {})
	defer s.Close()
	err = s.recover()
	if errors.Is(err, ErrNoEnd) {
		return false, nil
	}
	return err == nil && s.Status().From == 0, err
}

// sweep removes what killed processes left of streams that did not end, and that no upload needs,
// because it is older than a session. It ignores errors.
func sweep(ctx context.Context, locks *state.Dir, dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		id, _ := strings.CutSuffix(e.Name(), ".lock") // which unlock removes
		if info, err := e.Info(); err != nil || !state.ValidID(id) || time.Since(info.ModTime()) <= leftAfter {
			continue
		}
		unlock, err := locks.Lock(ctx, id)
		if err != nil {
			continue
		}
		if end, err := Ended(dir, id); err == nil && end == nil {
			_ = removeLocked(dir, id)
		}
		unlock()
	}
}
