package manifest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/gofrs/flock"
)

// lock locks the file at path, which it creates. The kernel releases the lock when
// the process ends. The lock is not on the manifest itself, because on Windows a lock
// also excludes other handles of the same process.
func lock(path string) (unlock func(), err error) {
	for {
		if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
			return nil, fmt.Errorf("the lock %s is not a regular file; remove it", path)
		}
		l := flock.New(path, flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(0o600))
		held, err := l.TryLock()
		if err != nil {
			return nil, fmt.Errorf("lock: %w", err)
		}
		if !held {
			holder := "another process"
			if text, err := os.ReadFile(path); err == nil && len(text) > 0 && len(text) < 300 {
				holder = strings.TrimSpace(string(text))
			}
			return nil, fmt.Errorf("%w by %s", ErrLocked, holder)
		}
		// The previous holder may have removed the file between open and lock.
		ours, err := l.Stat()
		if err == nil {
			var named os.FileInfo
			if named, err = os.Lstat(path); err == nil && os.SameFile(ours, named) {
				host, _ := os.Hostname()
				_ = os.WriteFile(path, fmt.Appendf(nil, "process %d on %s\n", os.Getpid(), host), 0o600)
				return func() {
					_ = os.Remove(path) // remove it before it is unlocked
					_ = l.Close()
				}, nil
			}
		}
		_ = l.Close()
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("lock: %w", err)
		}
	}
}
