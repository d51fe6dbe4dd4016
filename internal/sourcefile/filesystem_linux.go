package sourcefile

import (
	"os"
	"syscall"
	"unsafe"
)

// Magic numbers in statfs(2) of the file systems whose timestamps come from
// this machine's clock: https://man7.org/linux/man-pages/man2/statfs.2.html
const (
	magicBtrfs     = 0x9123683e
	magicExFAT     = 0x2011bab0
	magicExt       = 0xef53
	magicF2FS      = 0xf2f52010
	magicFAT       = 0x4d44
	magicHugetlbfs = 0x958458f6
	magicNTFS3     = 0x7366746e
	magicOverlay   = 0x794c7630
	magicRamfs     = 0x858458f6
	magicTmpfs     = 0x01021994
	magicXFS       = 0x58465342
	magicZFS       = 0x2fc12fc1
)

func fileSystemOf(f *os.File) fileSystem {
	c, err := f.SyscallConn()
	if err != nil {
		return fileSystem{}
	}
	var st syscall.Statfs_t
	_ = c.Control(func(fd uintptr) { _ = syscall.Fstatfs(int(fd), &st) }) // after an error st.Type is 0, which matches no case
	switch uint32(st.Type) {
	case magicTmpfs, magicRamfs, magicHugetlbfs:
		return fileSystem{local: true, memory: true}
	case magicOverlay:
		// It hides the file system below it, which may be in memory, as on a live
		// system. Those on disks have extents.
		return fileSystem{local: true, memory: !hasExtents(c)}
	case magicBtrfs, magicExFAT, magicExt, magicF2FS, magicFAT, magicNTFS3, magicXFS, magicZFS:
		return fileSystem{local: true}
	}
	return fileSystem{}
}

// hasExtents reports whether the file system describes where on a disk the file is.
// https://www.kernel.org/doc/html/latest/filesystems/fiemap.html
func hasExtents(c syscall.RawConn) bool {
	const fsIocFiemap = 0xc020660b
	query := struct {
		start, length                        uint64
		flags, mapped, extentCount, reserved uint32
	}{length: 1}
	errno := syscall.EINVAL
	_ = c.Control(func(fd uintptr) {
		_, _, errno = syscall.Syscall(syscall.SYS_IOCTL, fd, fsIocFiemap, uintptr(unsafe.Pointer(&query)))
	}) // on an error errno stays
	return errno == 0
}
