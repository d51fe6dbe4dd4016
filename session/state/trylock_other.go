//go:build !(darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd)

package state

import (
	"os"

	"github.com/gofrs/flock"
)

// tryShared gets a shared lock on a lock file for a moment. It returns false if a process holds the lock.
func tryShared(lock *os.File) (bool, error) {
	l := flock.New(lock.Name(), flock.SetFlag(os.O_RDONLY))
	defer l.Close()
	return l.TryRLock()
}
