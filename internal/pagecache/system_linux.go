//go:build amd64 || arm64 || loong64 || ppc64le || riscv64

package pagecache

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

// absentPages returns the pages of r that are not in the page cache, or none if they are few. There are none if the
// process does not own the file and may not write to it. r begins at a multiple of the size of a page.
//
// https://man7.org/linux/man-pages/man2/mincore.2.html
func absentPages(f *os.File, r span) (absent []span, err error) {
	c, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	var mapped []byte // it is never accessed
	controlErr := c.Control(func(fd uintptr) {
		mapped, err = syscall.Mmap(int(fd), r.from, int(r.len()), syscall.PROT_READ, syscall.MAP_SHARED)
	})
	if controlErr != nil {
		return nil, controlErr
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = syscall.Munmap(mapped) }()
	page := int64(os.Getpagesize())
	if all, err := samplesResident(mapped, int(page)); all || err != nil {
		return nil, err
	}
	resident := make([]byte, (r.len()+page-1)/page)
	if err := mincore(mapped, resident); err != nil {
		return nil, err
	}
	for i, in := range resident {
		at := r.from + int64(i)*page
		switch n := len(absent); {
		case in&1 != 0:
		case n > 0 && absent[n-1].to == at:
			absent[n-1].to = min(at+page, r.to)
		default:
			absent = append(absent, span{at, min(at+page, r.to)})
		}
	}
	return absent, nil
}

// samples is the number of pages of a window that are looked at first. To look at all pages of a file that is
// in the page cache costs 3 % of the CPU time of its upload.
const samples = 16

// samplesResident reports whether samples of the pages of a mapped range are all in the page cache. The others then
// are, too, because the system reads ahead, or are so few that they can stay there.
func samplesResident(mapped []byte, page int) (bool, error) {
	last := (len(mapped) - 1) / page
	for i := range samples {
		at := last * i / (samples - 1) * page
		var resident [1]byte
		if err := mincore(mapped[at:min(at+page, len(mapped))], resident[:]); err != nil || resident[0]&1 == 0 {
			return false, err
		}
	}
	return true, nil
}

// mincore records for each page of a mapped range whether it is in the page cache.
func mincore(mapped, resident []byte) error {
	_, _, errno := syscall.Syscall(syscall.SYS_MINCORE, uintptr(unsafe.Pointer(&mapped[0])), uintptr(len(mapped)), uintptr(unsafe.Pointer(&resident[0])))
	if errno != 0 {
		return errno
	}
	return nil
}

// dropPages removes the pages of r from the page cache, unless they are mapped or were changed.
//
// https://man7.org/linux/man-pages/man2/posix_fadvise.2.html
func dropPages(f *os.File, r span) {
	const dontNeed = 4
	c, err := f.SyscallConn()
	if err != nil {
		return
	}
	// It is only an optimization, so that errors do not matter.
	_ = c.Control(func(fd uintptr) {
		_, _, _ = syscall.Syscall6(syscall.SYS_FADVISE64, fd, uintptr(r.from), uintptr(r.len()), dontNeed, 0, 0)
	})
}
