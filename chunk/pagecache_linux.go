//go:build amd64 || arm64 || loong64 || ppc64le || riscv64

package chunk

import (
	"os"
	"sync"
	"syscall"
	"unsafe"
)

// observable reports whether the process may ask which pages are in the cache. A seccomp filter may kill a process
// that calls mincore(2): it is not in the set @system-service of systemd.
//
// https://man7.org/linux/man-pages/man2/PR_GET_SECCOMP.2const.html
var observable = sync.OnceValue(func() bool {
	mode, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_GET_SECCOMP, 0, 0)
	return errno == 0 && mode == 0
})

// absentPages returns the pages of r that are not in the page cache. There are none if the
// process does not own the file and may not write to it. r begins at a multiple of the size of a page.
//
// https://man7.org/linux/man-pages/man2/mincore.2.html
func absentPages(f *os.File, r Range) (absent []Range, err error) {
	c, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	var mapped []byte // it is never accessed
	controlErr := c.Control(func(fd uintptr) {
		mapped, err = syscall.Mmap(int(fd), r.From, int(r.Len()), syscall.PROT_READ, syscall.MAP_SHARED)
	})
	if controlErr != nil {
		return nil, controlErr
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = syscall.Munmap(mapped) }()
	page := int64(os.Getpagesize())
	resident := make([]byte, (r.Len()+page-1)/page)
	_, _, errno := syscall.Syscall(syscall.SYS_MINCORE, uintptr(unsafe.Pointer(&mapped[0])), uintptr(len(mapped)), uintptr(unsafe.Pointer(&resident[0])))
	if errno != 0 {
		return nil, errno
	}
	for i, in := range resident {
		at := r.From + int64(i)*page
		switch n := len(absent); {
		case in&1 != 0:
		case n > 0 && absent[n-1].To == at:
			absent[n-1].To = min(at+page, r.To)
		default:
			absent = append(absent, Range{at, min(at+page, r.To)})
		}
	}
	return absent, nil
}

// dropPages removes the pages of r from the page cache, unless they are mapped or were changed.
//
// https://man7.org/linux/man-pages/man2/posix_fadvise.2.html
func dropPages(f *os.File, r Range) {
	const dontNeed = 4
	c, err := f.SyscallConn()
	if err != nil {
		return
	}
	// It is only an optimization, so that errors do not matter.
	_ = c.Control(func(fd uintptr) {
		_, _, _ = syscall.Syscall6(syscall.SYS_FADVISE64, fd, uintptr(r.From), uintptr(r.Len()), dontNeed, 0, 0)
	})
}
