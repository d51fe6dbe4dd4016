package outbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"gcsup/session/state"
)

// stateDir is the directory of this package below that of the outbox.
const stateDir = ".outbox"

// lockID names the lock of the outbox in the state directory.
const lockID = "outbox"

// lock locks the outbox for this process. If another process runs it, the error is a
// *state.HeldError that names it.
func lock(dir string) (unlock func(), err error) {
	if err := checkOwn(dir, stateDir); err != nil {
		return nil, fmt.Errorf("outbox %s: %w", dir, err)
	}
	locks, err := state.OpenDir(filepath.Join(dir, stateDir))
	if err != nil {
		return nil, fmt.Errorf("outbox %s: %w", dir, err)
	}
	release, err := locks.Lock(context.Background(), lockID)
	if err != nil {
		_ = locks.Close()
		if held, ok := errors.AsType[*state.HeldError](err); ok {
			return nil, &InUseError{Dir: dir, Held: held}
		}
		return nil, fmt.Errorf("outbox %s: %w", dir, err)
	}
	return func() {
		release()
		_ = locks.Close()
	}, nil
}

// InUseError is the error of Open if another process runs the outbox.
type InUseError struct {
	Dir  string
	Held *state.HeldError // the holder; wraps state.ErrInUse
}

// Error names the outbox and its holder.
func (e *InUseError) Error() string {
	return fmt.Sprintf("outbox %s is in use by %s: only one process can upload its files", e.Dir, e.Held.Holder())
}

// Unwrap returns the error of the lock.
func (e *InUseError) Unwrap() error { return e.Held }

// holder returns the process that runs the outbox, or nil if none does.
func holder(dir string) (*state.HeldError, error) {
	if err := checkDir(dir, stateDir); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, stateDir)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	locks, err := state.OpenDir(path)
	if err != nil {
		return nil, err
	}
	defer locks.Close()
	if locked, err := locks.Locked(context.Background(), lockID); err != nil || !locked {
		return nil, err
	}
	unlock, err := locks.Lock(context.Background(), lockID)
	if err == nil { // it ended in between
		unlock()
		return nil, nil
	}
	if held, ok := errors.AsType[*state.HeldError](err); ok {
		return held, nil
	}
	return nil, err
}
