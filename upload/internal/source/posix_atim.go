//go:build linux || dragonfly || openbsd || solaris

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
	seconds, _ := st.Atim.Unix()
	return POSIX{seconds, st.Uid, st.Gid}, true
}
