package upload_test

import (
	"context"
	"errors"
	"os"
	"syscall"
	"testing"
	"unsafe"

	"gcsup/chunk"
	"gcsup/fakegcs/faults"
	"gcsup/internal/require"
	"gcsup/upload"
)

// residentBytes returns how much of a file is in the page cache.
func residentBytes(t *testing.T, path string) (n int64) {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	info, err := f.Stat()
	require.NoError(t, err)
	mapped, err := syscall.Mmap(int(f.Fd()), 0, int(info.Size()), syscall.PROT_READ, syscall.MAP_SHARED)
	require.NoError(t, err)
	defer func() { _ = syscall.Munmap(mapped) }()
	pages := make([]byte, (len(mapped)+os.Getpagesize()-1)/os.Getpagesize())
	if _, _, errno := syscall.Syscall(syscall.SYS_MINCORE, uintptr(unsafe.Pointer(&mapped[0])), uintptr(len(mapped)), uintptr(unsafe.Pointer(&pages[0]))); errno != 0 {
		t.Skipf("mincore: %v", errno)
	}
	for _, p := range pages {
		n += int64(p&1) * int64(os.Getpagesize())
	}
	return n
}

// evict removes a file from the page cache. It skips the test if that is not possible.
func evict(t *testing.T, path string) {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	require.NoError(t, f.Sync())
	const dontNeed = 4
	_, _, errno := syscall.Syscall6(syscall.SYS_FADVISE64, f.Fd(), 0, 0, dontNeed, 0, 0)
	if n := residentBytes(t, path); errno != 0 || n > 0 {
		t.Skipf("%d bytes stay in the page cache: %v", n, errno)
	}
}

// TestPageCache checks that an upload, or a comparison, leaves of a large file in the page cache only
// what was there before.
func TestPageCache(t *testing.T) {
	if mode, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_GET_SECCOMP, 0, 0); mode != 0 || errno != 0 {
		t.Skip("the process has a seccomp filter")
	}
	const size, head = 24*mib + 5, 8 * mib
	content := data(size)
	composed := func(o *upload.Options) {
		o.Parallel = &upload.Parts{Connections: 2, MinPart: 8 * mib, Join: upload.ByCompose}
	}
	compressed := spec
	compressed.Gzip = true
	for _, test := range []struct {
		name string
		spec upload.Spec
		with func(*upload.Options)
	}{
		{"one connection", spec, func(*upload.Options) {}},
		{"composed", spec, composed},
		{"multipart", spec, byMultipart},
		{"multipart without memory", spec, func(o *upload.Options) { byMultipart(o); o.Memory = mib }},
		{"compressed", compressed, func(*upload.Options) {}},
	} {
		t.Run(test.name, func(t *testing.T) {
			inBubble(t, nil, func(w *world) {
				path := w.file(content)
				up := w.uploader(test.with)
				send := func(what string, want int64) {
					res, err := up.File(w.t.Context(), path, test.spec)
					require.NoError(t, err)
					// The system may have read a little more than it was asked for, and may need memory.
					if n := residentBytes(t, path); n < want-2*mib || n > want+mib {
						t.Errorf("%s: %d bytes are in the page cache, want %d; skipped: %v", what, n, want, res.Skipped)
					}
				}
				evict(t, path)
				send("nothing was cached", 0)
				readFirst(t, path, int(head))
				was := residentBytes(t, path)
				send("some was cached", was)
				readFirst(t, path, int(size))
				send("all was cached", residentBytes(t, path))
				evict(t, path)
				up = withCall(up, upload.CallOptions{Skip: upload.SkipSameContent})
				send("compared", 0)
			})
		})
	}
}

// readFirst reads the first bytes of a file.
func readFirst(t *testing.T, path string, n int) {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	const random = 1 // no reading ahead
	if _, _, errno := syscall.Syscall6(syscall.SYS_FADVISE64, f.Fd(), 0, 0, random, 0, 0); errno != 0 {
		t.Skipf("posix_fadvise: %v", errno)
	}
	if _, err := f.ReadAt(make([]byte, n), 0); err != nil {
		t.Fatal(err)
	}
}

// TestPageCacheKeepsUncommitted checks that committed bytes leave the page cache, and those that must be
// sent again stay.
func TestPageCacheKeepsUncommitted(t *testing.T) {
	if mode, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_GET_SECCOMP, 0, 0); mode != 0 || errno != 0 {
		t.Skip("the process has a seccomp filter")
	}
	const size, committed = 24 * mib, 12 * mib
	inBubble(t, nil, func(w *world) {
		path := w.file(data(size))
		evict(t, path)
		w.addFaults(faults.Fault{Match: faults.Match{Op: faults.OpPut}, Do: faults.Action{Effect: faults.EffectCutRequest, Bytes: committed}})
		ctx, stop := context.WithCancel(w.t.Context())
		defer stop()
		_, err := w.uploader(func(o *upload.Options) {
			o.Observer = func(e upload.Event) {
				if e.Committed > 0 {
					stop()
				}
			}
		}).File(ctx, path, spec)
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("%v\n%s", err, w.trace())
		}
		if n := residentBytes(t, path); n < chunk.Granularity || n > size-committed+mib {
			t.Errorf("%d bytes are in the page cache", n)
		}
	})
}
