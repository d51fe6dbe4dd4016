package outbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"gcsup/session/state"
)

// stateDir is the directory of this package below that of the outbox.
const stateDir = ".outbox"

// lockID names the lock of the outbox in the state directory.
const lockID = "outbox"

// lockFile is the file of the lock in the state directory.
const lockFile = lockID + ".lock"

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
func holder(box string) (*state.HeldError, error) {
	dir, err := openDir(box, stateDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	defer dir.Close()
	return state.Holder(context.Background(), dir, lockID)
}

// touchLock shows that the process that holds the lock in the directory is alive. It needs no space on the disk.
func touchLock(dir *os.Root) {
	now := time.Now()
	_ = dir.Chtimes(lockFile, now, now)
}

// lockTouched returns when the process that holds the lock last showed that it is alive.
func lockTouched(dir string) time.Time {
	info, err := boxDisk(dir).lstat(filepath.Join(dir, stateDir, lockFile))
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}
