package blob

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
)

// Heap keeps the bytes of blobs: up to a limit in memory, and the others in a temporary
// file, which exists from the first write. mu is not held during reads and writes.
type Heap struct {
	limit int64
	freed func(n int64)
	mu    sync.Mutex // guards the fields below
	used  int64      // bytes in memory
	file  *os.File   // nil before the first write
	free  []extent   // in the order of the file; the last one has all after its end
}

// extent is a part of the file. Its offset and size are multiples of extentUnit, which limits
// the number of extents for the bytes of an append.
type extent struct{ off, n int64 }

const extentUnit = 4 << 10

// NewHeap returns a heap that keeps at most limit bytes in memory. Its blobs call freed
// with the number of bytes of memory that they release.
func NewHeap(limit int64, freed func(n int64)) *Heap {
	return &Heap{limit: limit, freed: freed, free: []extent{{0, 1 << 62}}}
}

// Close removes the temporary file. Blobs with bytes in it cannot be used afterwards.
func (h *Heap) Close() error {
	if h.file == nil {
		return nil
	}
	err := h.file.Close()
	_ = os.Remove(h.file.Name()) // if it still has its name; see take
	return err
}

// take returns extents for n bytes: one in memory if they fit there, else those of the file that it returns.
func (h *Heap) take(n int64) (_ *os.File, taken []extent, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.used+n <= h.limit {
		h.used += n
		return nil, []extent{{0, n}}, nil
	}
	if h.file == nil {
		if h.file, err = os.CreateTemp("", "fakegcs-*.objects"); err != nil {
			return nil, nil, fmt.Errorf("%w: %w", ErrSpill, err)
		}
		_ = os.Remove(h.file.Name()) // nothing remains after a kill; Windows does not allow it
	}
	for n = (n + extentUnit - 1) / extentUnit * extentUnit; n > 0; {
		first := &h.free[0]
		e := extent{first.off, min(n, first.n)}
		if first.off, first.n = first.off+e.n, first.n-e.n; first.n == 0 {
			h.free = h.free[1:]
		}
		taken, n = append(taken, e), n-e.n
	}
	return h.file, taken, nil
}

// release releases the space of s. The file gets shorter if its end is free.
func (h *Heap) release(s segment) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.in != h.file {
		h.used -= s.at.n
		h.freed(s.at.n)
		return
	}
	at, _ := slices.BinarySearchFunc(h.free, s.at.off, func(e extent, off int64) int { return cmp.Compare(e.off, off) })
	h.free = slices.Insert(h.free, at, s.at)
	for _, i := range []int{at + 1, at} { // join neighbors
		if i > 0 && i < len(h.free) && h.free[i-1].off+h.free[i-1].n == h.free[i].off {
			h.free[i-1].n += h.free[i].n
			h.free = slices.Delete(h.free, i, i+1)
		}
	}
	if end := h.free[len(h.free)-1].off; end <= s.at.off {
		_ = h.file.Truncate(end) // if it fails, the next writes use the space
	}
}

// NewBlob returns an empty blob.
func (h *Heap) NewBlob() *Blob {
	b := &heapBlob{heap: h}
	return &Blob{storage: b, remove: func() error { return b.Truncate(0) }}
}

// heapBlob is a blob of a heap.
type heapBlob struct {
	heap *Heap
	segs []segment
	size int64
}

// segment has the first n bytes of an extent of the file, or of memory, where the offset is 0.
type segment struct {
	in io.ReaderAt
	at extent
	n  int64
}

func (s segment) Size() int64 { return s.n }

func (s segment) Section(from, to int64) (io.ReadCloser, error) {
	return io.NopCloser(io.NewSectionReader(s.in, s.at.off+from, to-from)), nil
}

func (b *heapBlob) Size() int64  { return b.size }
func (b *heapBlob) Close() error { return nil }

// Append changes nothing if it fails.
func (b *heapBlob) Append(p []byte, keep bool) (bool, error) {
	size := b.size
	file, taken, err := b.heap.take(int64(len(p)))
	keep = keep && file == nil && len(p) == cap(p) // a short tail must not hold a whole buffer
	for _, at := range taken {
		part := p[:min(int64(len(p)), at.n)]
		s := segment{file, at, int64(len(part))}
		if file == nil {
			if !keep {
				part = bytes.Clone(part)
			}
			s.in = bytes.NewReader(part)
		} else if _, writeErr := file.WriteAt(part, at.off); writeErr != nil {
			err = fmt.Errorf("%w: %w", ErrSpill, writeErr)
		}
		b.segs, b.size, p = append(b.segs, s), b.size+s.n, p[len(part):]
	}
	if err != nil {
		_ = b.Truncate(size)
	}
	return keep, err
}

// Truncate releases the bytes after size. It never fails.
func (b *heapBlob) Truncate(size int64) error {
	for b.size > size {
		i := len(b.segs) - 1
		last := b.segs[i]
		if keep := last.n - (b.size - size); keep > 0 { // its space stays in use
			b.segs[i].n, b.size = keep, size
			break
		}
		b.segs[i] = segment{}
		b.segs, b.size = b.segs[:i], b.size-last.n
		b.heap.release(last)
	}
	return nil
}

func (b *heapBlob) Section(from, to int64) (io.ReadCloser, error) {
	return &pieceReader[segment]{pieces: b.segs, from: from, to: min(to, b.size)}, nil
}
