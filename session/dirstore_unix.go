//go:build unix

package session

import (
	"io/fs"
	"os"
	"syscall"
)

// lax reports whether anyone but the owner has access.
func lax(info fs.FileInfo) bool { return info.Mode().Perm()&0o077 != 0 }

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
	return dir.Sync()
}
