package state

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/gofrs/flock"
)

// sharingViolation is ERROR_SHARING_VIOLATION of Windows.
const sharingViolation = syscall.Errno(32)

// Lock locks the upload for this process. The kernel releases the lock when the
// process ends for any reason. A lock file that is left does not lock the
// upload. If another process holds the lock, the error is a *[HeldError], which names
// that process, except on Windows.
func (d *Dir) Lock(ctx context.Context, id string) (unlock func(), err error) {
	if err := d.check(id); err != nil {
		return nil, err
	}
	name := id + lockSuffix
	path := filepath.Join(d.root.Name(), name)
	for checks := 0; ; {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("lock upload: %w: %v", ctx.Err(), context.Cause(ctx))
		}
		if _, err := d.regular(name); errors.Is(err, ErrInsecurePermissions) {
			return nil, err
		}
		lock := flock.New(path, flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(0o600))
		held, err := lock.TryLock()
		if runtime.GOOS == "windows" && errors.Is(err, sharingViolation) {
			err = nil // another process is removing the file in unlock
		}
		if err != nil {
			return nil, fmt.Errorf("lock upload: %w", err)
		}
		if !held && checks < lockChecks {
			checks++
			select {
			case <-time.After(lockCheckTime):
			case <-ctx.Done():
			}
			continue
		}
		if !held {
			return nil, d.heldBy(name)
		}
		// The previous holder may have removed the file between open and lock. This lock
		// would then be on a deleted file, and another process could lock a new file with the
		// same name.
		taken()
		ours, err := lock.Stat()
		if err == nil {
			var named os.FileInfo
			if named, err = d.root.Lstat(name); err == nil && os.SameFile(ours, named) {
				d.sign(name)
				// Unlock only once, because the file may be the lock of another process later.
				return sync.OnceFunc(func() { d.unlock(lock, id) }), nil
			}
		}
		_ = lock.Close()
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("lock upload: %w", err)
		}
		// flock uses the path, and Lstat uses the open directory. They differ
		// if the directory was replaced.
		opened, err := d.root.Stat(".")
		if err != nil {
			return nil, fmt.Errorf("lock upload: %w", err)
		}
		if now, err := os.Stat(d.root.Name()); err != nil || !os.SameFile(opened, now) {
			return nil, fmt.Errorf("lock upload: the state directory %s was removed or replaced; run the command again", d.root.Name())
		}
	}
}

// taken is called between the lock of a file and the look at its name. A test replaces it.
var taken = func() {}

// Locked holds a shared lock for a moment. Lock therefore tries again, lockChecks
// times, before it returns ErrInUse.
const (
	lockChecks    = 8
	lockCheckTime = 5 * time.Millisecond
)

// Locked reports whether a process holds the lock of an upload. It creates no lock
// file.
func (d *Dir) Locked(_ context.Context, id string) (bool, error) {
	if err := d.check(id); err != nil {
		return false, err
	}
	lock, _, err := d.open(id + lockSuffix)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("lock of upload: %w", err)
	}
	free, err := tryShared(lock)
	_ = lock.Close()
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return false, fmt.Errorf("lock of upload: %w", err)
	}
	return err == nil && !free, nil
}

// Holder returns the process that holds the lock of an upload in the directory dir, or nil if none does. It
// changes nothing. Unlike [OpenDir] it accepts the directory of another user, so that root can look. It follows
// no link in the directory, and waits for no pipe. The fields of the result are zero if the process could not
// write who it is, for example because the disk is full.
func Holder(ctx context.Context, dir *os.Root, id string) (*HeldError, error) {
	d := &Dir{root: dir}
	if locked, err := d.Locked(ctx, id); err != nil || !locked {
		return nil, err
	}
	return d.heldBy(id + lockSuffix), nil
}

// lockHolder is the content of a lock file. It is only for the error message of another
// process: the lock does not depend on it.
type lockHolder struct {
	Host  string    `json:"host"`
	PID   int       `json:"pid"`
	Since time.Time `json:"since"`
}

// sign writes to the lock file which process holds the lock.
func (d *Dir) sign(name string) {
	host, _ := os.Hostname()
	if text, err := json.Marshal(lockHolder{host, os.Getpid(), time.Now().UTC()}); err == nil {
		_ = d.root.WriteFile(name, append(text, '\n'), 0o600)
	}
}

// heldBy returns the error for a lock file that another process has locked. Its fields
// are zero if that process has not signed the file yet.
func (d *Dir) heldBy(name string) *HeldError {
	f, _, err := d.open(name)
	if err != nil {
		return &HeldError{}
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, lockLimit+1))
	var by lockHolder
	if err != nil || len(text) > lockLimit || json.Unmarshal(text, &by) != nil {
		return &HeldError{}
	}
	return &HeldError{Host: by.Host, PID: by.PID, Since: by.Since}
}

// lockLimit bounds the size of a lock file. The name of a host has at most 255 bytes.
const lockLimit = 1 << 10

// unlock releases the lock. If the upload has no saved upload, unlock removes the lock
// file first, while it holds the lock.
func (d *Dir) unlock(lock *flock.Flock, id string) {
	if runtime.GOOS == "windows" {
		// Windows does not remove a file that flock has open, neither ours nor
		// that of the next holder.
		_ = lock.Close()
	}
	if _, err := d.root.Lstat(id + tokenSuffix); errors.Is(err, os.ErrNotExist) {
		_ = d.root.Remove(id + lockSuffix)
	}
	_ = lock.Close()
}
