//go:build darwin || freebsd || netbsd

package upload

import (
	"io/fs"
	"syscall"
)

func posixOf(info fs.FileInfo) (posix, bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return posix{}, false
	}
	seconds, _ := st.Atimespec.Unix()
	return posix{seconds, st.Uid, st.Gid}, true
}
