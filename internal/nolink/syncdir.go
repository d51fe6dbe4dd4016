package nolink

import (
	"errors"
	"os"
	"runtime"
	"syscall"
)

// SyncDir makes the names in a directory durable: renames, removals and new files. Windows cannot open a directory for
// syncing, and its file system journals a rename.
func SyncDir(root *os.Root) error {
	if runtime.GOOS == "windows" {
		return nil
	}
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
