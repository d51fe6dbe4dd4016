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

	"gcsup/internal/require"
)

// newSmallHeap returns a heap without memory, and its file.
func newSmallHeap(t *testing.T) (*Heap, *os.File) {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "spill"))
	require.NoError(t, err)
	h := NewHeap(0, func(int64) {})
	h.file = f
	t.Cleanup(func() { _ = h.Close() })
	return h, f
}

// fileSize returns the size of the file of h, and checks that no part of it is free if it is empty.
func (h *Heap) fileSize(t *testing.T) int64 {
	t.Helper()
	size := h.free[len(h.free)-1].off
	if size == 0 && len(h.free) > 1 {
		t.Errorf("an empty file has the free parts %v", h.free)
	}
	return size
}

// maxAppend is the maximum size of an append of the server.
const maxAppend = Granularity

func contents(t *testing.T, b *Blob) []byte {
	t.Helper()
	r, err := b.Section(0, b.Size())
	require.NoError(t, err)
	p, err := io.ReadAll(r)
	require.NoError(t, err)
	return p
}

// If the disk is full, an append fails and changes nothing, even if it used the space of a released blob.
func TestFullDisk(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_RDWR, 0)
	if err != nil {
		t.Skip(err)
	}
	defer full.Close()
	h, f := newSmallHeap(t)
	var blobs []*Blob
	whole := bytes.Repeat([]byte("whole"), maxAppend)[:maxAppend]
	for range 4 {
		b := h.NewBlob().Retain()
		if _, err := b.Append(whole, false); err != nil {
			t.Fatal(err)
		}
		blobs = append(blobs, b)
	}
	blobs[1].Release() // its space is between that of others
	one := blobs[0]
	h.file = full
	for range 3 {
		if _, err := one.Append(append(whole, "more"...), false); !errors.Is(err, ErrSpill) || !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("append to a full disk: %v", err)
		}
	}
	if h.file = f; len(h.free) != 2 || h.fileSize(t) != 4*maxAppend {
		t.Errorf("after failed appends, %v is free", h.free)
	}
	for _, b := range []*Blob{one, blobs[2]} {
		if !bytes.Equal(contents(t, b), whole) {
			t.Error("a failed append changed bytes")
		}
	}
	if _, err := one.Append([]byte("more"), false); err != nil {
		t.Errorf("append after there is space: %v", err)
	}
	if got := contents(t, one); !bytes.Equal(got, append(whole, "more"...)) {
		t.Errorf("%d bytes, or others than appended", len(got))
	}
}

// Random blobs keep their bytes, and the file is empty at the end.
func TestSpilledBlobs(t *testing.T) {
	h, f := newSmallHeap(t)
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
			p := bytes.Repeat([]byte{byte(random.Uint32())}, 1+random.IntN(maxAppend>>random.IntN(8)))
			if _, err := b.Append(p, false); err != nil {
				t.Fatal(err)
			}
			b.want = append(b.want, p...)
		}
		if size := random.IntN(len(b.want)); random.IntN(4) == 0 {
			require.NoError(t, b.Truncate(int64(size)))
			b.want = b.want[:size]
		}
		blobs = append(blobs, b)
		most = max(most, h.fileSize(t))
	}
	if most > 41*3*maxAppend {
		t.Errorf("the file had %d bytes: released space is not used again", most)
	}
	for _, b := range blobs {
		b.Release()
	}
	info, err := f.Stat()
	if err != nil || info.Size() != 0 || h.fileSize(t) != 0 {
		t.Errorf("the file has %v bytes, %v after the last blob was released", info.Size(), err)
	}
}

// Blobs are written, read and released by several goroutines.
func TestSpillConcurrently(t *testing.T) {
	h, f := newSmallHeap(t)
	h.limit = 3 * maxAppend / 2
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
	if info, err := f.Stat(); err != nil || info.Size() != 0 || h.used != 0 {
		t.Errorf("%d bytes in the file, %d in memory, %v", info.Size(), h.used, err)
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
		require.NoError(t, err)
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
