package process

import (
	"os"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// mounted reports whether a file is a mounted secret that only a group of this process can read, as
// in a container: root owns it, the mount is read-only, and the mode has no bits for others.
func mounted(f *os.File, info os.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || st.Uid != 0 || info.Mode().Perm()&0o037 != 0 {
		return false
	}
	var fs unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &fs); err != nil || fs.Flags&unix.ST_RDONLY == 0 {
		return false
	}
	groups, err := os.Getgroups()
	return err == nil && (int(st.Gid) == os.Getegid() || slices.Contains(groups, int(st.Gid)))
}
