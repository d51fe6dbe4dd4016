//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package state

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// tryShared gets a shared lock on an open lock file, until it is closed. It returns false if a process holds the lock. A
// second opening by the path would follow what has that path then.
func tryShared(lock *os.File) (bool, error) {
	err := unix.Flock(int(lock.Fd()), unix.LOCK_SH|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}
