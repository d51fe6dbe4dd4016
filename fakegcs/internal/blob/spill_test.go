package blob

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"testing"
)

// smallDisk is a file on a disk that has no space beyond a number of bytes.
type smallDisk struct {
	*os.File
	space int64
}

func (f *smallDisk) WriteAt(p []byte, off int64) (int, error) {
	if off+int64(len(p)) <= f.space {
		return f.File.WriteAt(p, off)
	}
	n, err := f.File.WriteAt(p[:max(0, min(int64(len(p)), f.space-off))], off)
	if err == nil {
		err = &os.PathError{Op: "write", Path: f.Name(), Err: syscall.ENOSPC}
	}
	return n, err
}

// newSmallHeap returns a heap without memory, whose file has a limited size.
func newSmallHeap(t *testing.T, space int64) (*Heap, *os.File) {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "spill"))
	if err != nil {
		t.Fatal(err)
	}
	h := newHeap(0, func(int64) {}, func() (spillFile, error) { return &smallDisk{f, space}, nil })
	t.Cleanup(func() { _ = h.Close() })
	return h, f
}

func contents(t *testing.T, b *Blob) []byte {
	t.Helper()
	r, err := b.Section(0, b.Size())
	if err != nil {
		t.Fatal(err)
	}
	p, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// If the disk is full, an append fails and changes nothing. It succeeds after other blobs
// were released.
func TestFullDisk(t *testing.T) {
	h, _ := newSmallHeap(t, 2*maxBlock)
	one, two := h.NewBlob().Retain(), h.NewBlob().Retain()
	whole := bytes.Repeat([]byte("whole"), maxBlock)[:maxBlock]
	for _, b := range []*Blob{one, two} {
		if _, err := b.Append(whole, false); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		_, err := one.Append([]byte("more"), false)
		if _, ok := errors.AsType[*SpillError](err); !ok || !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("append to a full disk: %v", err)
		}
	}
	if !bytes.Equal(contents(t, one), whole) || !bytes.Equal(contents(t, two), whole) {
		t.Error("a failed append changed bytes")
	}
	two.Release()
	if _, err := one.Append([]byte("more"), false); err != nil {
		t.Errorf("append after another blob was released: %v", err)
	}
	if got := contents(t, one); !bytes.Equal(got, append(whole, "more"...)) {
		t.Errorf("%d bytes, or others than appended", len(got))
	}
}

// Random blobs keep their bytes, and the file is empty at the end.
func TestSpilledBlobs(t *testing.T) {
	h, f := newSmallHeap(t, 1<<40)
	random := rand.New(rand.NewPCG(1, 2))
	type kept struct {
		*Blob
		want []byte
	}
	var blobs []kept
	var most int64
	for range 3000 {
		if n := len(blobs); n > 40 || n > 0 && random.IntN(3) == 0 {
			i := random.IntN(n)
			if !bytes.Equal(contents(t, blobs[i].Blob), blobs[i].want) {
				t.Fatal("a blob has other bytes")
			}
			blobs[i].Release()
			blobs[i] = blobs[n-1]
			blobs = blobs[:n-1]
			continue
		}
		b := kept{Blob: h.NewBlob().Retain()}
		for range 1 + random.IntN(3) {
			p := bytes.Repeat([]byte{byte(random.Uint32())}, 1+random.IntN(maxBlock>>random.IntN(8)))
			if _, err := b.Append(p, false); err != nil {
				t.Fatal(err)
			}
			b.want = append(b.want, p...)
		}
		if size := random.IntN(len(b.want)); random.IntN(4) == 0 {
			if err := b.Truncate(int64(size)); err != nil {
				t.Fatal(err)
			}
			b.want = b.want[:size]
		}
		blobs = append(blobs, b)
		most = max(most, h.spill.size)
	}
	if most > 41*3*maxBlock {
		t.Errorf("the file had %d bytes: released blocks are not used again", most)
	}
	for _, b := range blobs {
		b.Release()
	}
	info, err := f.Stat()
	if err != nil || info.Size() != 0 || h.spill.size != 0 {
		t.Errorf("the file has %v bytes, %v after the last blob was released", info.Size(), err)
	}
	for order, free := range h.spill.free {
		if n := len(free.offsets); n > 0 {
			t.Errorf("order %d has %d free blocks in an empty file", order, n)
		}
	}
}

// Blobs are written, read and released by several goroutines.
func TestSpillConcurrently(t *testing.T) {
	h, f := newSmallHeap(t, 1<<40)
	h.limit = 3 * maxBlock / 2
	var group sync.WaitGroup
	for g := range 8 {
		group.Go(func() {
			want := bytes.Repeat([]byte{byte(g)}, 40<<10)
			for range 50 {
				b := h.NewBlob().Retain()
				for range 3 {
					if _, err := b.Append(want, false); err != nil {
						t.Error(err)
						return
					}
				}
				if got := contents(t, b); !bytes.Equal(got, bytes.Repeat(want, 3)) {
					t.Errorf("blob of %d: other bytes", g)
				}
				b.Release()
			}
		})
	}
	group.Wait()
	if info, err := f.Stat(); err != nil || info.Size() != 0 || h.used.Load() != 0 {
		t.Errorf("%d bytes in the file, %d in memory, %v", info.Size(), h.used.Load(), err)
	}
}

// The temporary file has no name while it is in use, if the system allows that, and none
// after Close.
func TestTemporaryFile(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	t.Setenv("TMP", dir) // Windows
	h := NewHeap(0, func(int64) {})
	b := h.NewBlob().Retain()
	if _, err := b.Append([]byte("bytes"), false); err != nil {
		t.Fatal(err)
	}
	names := func() int {
		t.Helper()
		list, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	if n := names(); n > 0 && runtime.GOOS != "windows" {
		t.Errorf("the directory has %d names while the file is in use", n)
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	if n := names(); n > 0 {
		t.Errorf("the directory has %d names after Close", n)
	}
	if _, err := b.Append([]byte("more"), false); !errors.Is(err, os.ErrClosed) {
		t.Errorf("append after Close: %v", err)
	}
	b.Release()
}
