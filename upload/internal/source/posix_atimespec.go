//go:build darwin || freebsd || netbsd

package source

import (
	"io/fs"
	"syscall"
)

func POSIXOf(info fs.FileInfo) (POSIX, bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return POSIX{}, false
	}
	seconds, _ := st.Atimespec.Unix()
	return POSIX{seconds, st.Uid, st.Gid}, true
}
