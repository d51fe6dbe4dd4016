//go:build unix

package state

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// lax reports whether other users have access to the file.
func lax(info fs.FileInfo) bool { return info.Mode().Perm()&0o077 != 0 }

// writable reports whether other users can create files in dir.
func writable(dir fs.FileInfo) bool { return dir.Mode().Perm()&0o022 != 0 }

func ownedByUs(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return !ok || int(stat.Uid) == os.Geteuid()
}

// syncDir makes renames and removals durable.
func syncDir(root *os.Root) error {
	dir, err := root.Open(".")
	if err != nil {
		return err
	}
	defer dir.Close()
	err = dir.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		return nil // some network file systems do not support it
	}
	return err
}
