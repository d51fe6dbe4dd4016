//go:build unix

package state

import (
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
