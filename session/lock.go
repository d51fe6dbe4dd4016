package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/gofrs/flock"
)

// Lock takes the upload for this process. The lock is the kernel's, on an open
// file: it ends with the process, however that ends, and no stale lock file
// can hold an upload. While another process has it, the error wraps [ErrInUse]
// and names that process.
func (d *Dir) Lock(ctx context.Context, id string) (unlock func(), err error) {
	if !validID(id) {
		return nil, fmt.Errorf("%w: %q", ErrNoToken, id)
	}
	name := id + lockSuffix
	path := filepath.Join(d.root.Name(), name)
	for {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("lock upload: %w", context.Cause(ctx))
		}
		if info, err := d.root.Lstat(name); err == nil && !info.Mode().IsRegular() {
			return nil, fmt.Errorf("%w: %s is not a plain file; remove it", ErrUnsafe, path)
		}
		lock := flock.New(path, flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(0o600))
		held, err := lock.TryLock()
		if err != nil {
			return nil, fmt.Errorf("lock upload: %w", err)
		}
		if !held {
			holder := "another process"
			if text, err := d.root.ReadFile(name); err == nil && len(text) > 0 && len(text) < 300 {
				holder = strings.TrimSpace(string(text))
			}
			return nil, fmt.Errorf("%w by %s", ErrInUse, holder)
		}
		// The one who held it before may have removed the file between our
		// open and our lock: then this lock is on a file without a name, and
		// the next one would get a lock of their own.
		ours, err := lock.Stat()
		if err == nil {
			var named os.FileInfo
			if named, err = d.root.Lstat(name); err == nil && os.SameFile(ours, named) {
				d.sign(name)
				// Once, because the file's name may be another's lock by then.
				return sync.OnceFunc(func() { d.unlock(lock, id) }), nil
			}
		}
		_ = lock.Close()
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("lock upload: %w", err)
		}
		// The lock is taken by path, the name is looked up in the directory that
		// was opened.
		opened, err := d.root.Stat(".")
		if err != nil {
			return nil, fmt.Errorf("lock upload: %w", err)
		}
		if now, err := os.Stat(d.root.Name()); err != nil || !os.SameFile(opened, now) {
			return nil, fmt.Errorf("lock upload: the state directory %s was removed or replaced; run the command again", d.root.Name())
		}
	}
}

// sign writes who holds the lock, for the message of the second one. It is
// for people only: the lock does not depend on it.
func (d *Dir) sign(name string) {
	host, _ := os.Hostname()
	_ = d.root.WriteFile(name, fmt.Appendf(nil, "process %d on %s\n", os.Getpid(), host), 0o600)
}

// unlock removes the lock file, while the lock is held, when the upload is
// done and nothing is left of it.
func (d *Dir) unlock(lock *flock.Flock, id string) {
	if _, err := d.root.Lstat(id + tokenSuffix); errors.Is(err, os.ErrNotExist) {
		_ = d.root.Remove(id + lockSuffix)
	}
	_ = lock.Close()
}
