package sourcefile

import (
	"os"
	"syscall"
)

func fileSystemOf(f *os.File) fileSystem {
	c, err := f.SyscallConn()
	if err != nil {
		return fileSystem{}
	}
	var st syscall.Statfs_t
	_ = c.Control(func(fd uintptr) { _ = syscall.Fstatfs(int(fd), &st) }) // after an error the name is empty
	var name []byte
	for _, b := range st.Fstypename {
		if b == 0 {
			break
		}
		name = append(name, byte(b))
	}
	switch string(name) {
	case "apfs", "hfs": // their timestamps come from this machine's clock
		return fileSystem{local: true}
	}
	return fileSystem{}
}
