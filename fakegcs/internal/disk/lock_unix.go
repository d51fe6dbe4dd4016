//go:build unix

package disk

import (
	"errors"
	"os"
	"syscall"
)

// lockFile opens path and locks it until unlockFile is called or the process dies.
// If another server has it, the error wraps [ErrInUse].
func lockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		if err == syscall.EWOULDBLOCK {
			err = ErrInUse
		}
		return nil, &os.PathError{Op: "lock", Path: path, Err: err}
	}
	return f, nil
}

// unlockFile unlocks and closes f. Closing it is not enough: a process that another goroutine
// is starting has f, and thus the lock, until it runs its program.
func unlockFile(f *os.File) error {
	return errors.Join(syscall.Flock(int(f.Fd()), syscall.LOCK_UN), f.Close())
}
