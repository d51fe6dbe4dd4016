//go:build darwin || freebsd || netbsd

package regular

import (
	"io/fs"
	"os"
	"syscall"
)

// Identify returns the identity of a file with the metadata info.
func Identify(_ *os.File, info fs.FileInfo) (Identity, error) {
	id := newIdentity(info)
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		id.ChangeTimeNS = st.Ctimespec.Nano()
		id.Device, id.Inode = uint64(st.Dev), uint64(st.Ino)
	}
	return id, nil
}
