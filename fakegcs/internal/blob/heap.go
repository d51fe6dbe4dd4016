package blob

import (
	"io"
	"slices"
	"sort"
	"sync/atomic"
)

// Heap keeps the bytes of blobs: up to a limit in memory, and the others in a temporary
// file.
type Heap struct {
	limit int64
	used  atomic.Int64 // bytes in memory
	freed func(n int64)
	spill *spill
}

// NewHeap returns a heap that keeps at most limit bytes in memory. Its blobs call freed
// with the number of bytes of memory that they release.
func NewHeap(limit int64, freed func(n int64)) *Heap {
	return newHeap(limit, freed, createTemp)
}

func newHeap(limit int64, freed func(n int64), create func() (spillFile, error)) *Heap {
	return &Heap{limit: limit, freed: freed, spill: newSpill(create)}
}

// NewBlob returns an empty blob.
func (h *Heap) NewBlob() *Blob {
	m := &memory{heap: h}
	return &Blob{storage: m, remove: func() error { m.drop(); return nil }}
}

// Close removes the temporary file. Blobs with bytes in it cannot be read afterwards.
func (h *Heap) Close() error { return h.spill.close() }

// reserve reports whether n more bytes may be in memory, and counts them if they may.
func (h *Heap) reserve(n int64) bool {
	if h.used.Add(n) <= h.limit {
		return true
	}
	h.used.Add(-n)
	return false
}

// release removes n bytes of memory, and the blocks of the temporary file.
func (h *Heap) release(n int64, blocks []block) {
	if n > 0 {
		h.used.Add(-n)
		h.freed(n)
	}
	if len(blocks) > 0 {
		h.spill.release(blocks)
	}
}

// memory is a blob of a heap.
type memory struct {
	heap *Heap
	segs []segment
}

// segment is a part of a blob.
type segment struct {
	p   []byte // nil: the bytes are in block
	at  block
	end int64 // offset in the blob after the segment
}

func (b *memory) Size() int64 {
	if len(b.segs) == 0 {
		return 0
	}
	return b.segs[len(b.segs)-1].end
}

func (b *memory) Append(p []byte, keep bool) (bool, error) {
	if len(p) == 0 {
		return false, nil
	}
	size := b.Size()
	if !b.heap.reserve(int64(len(p))) {
		blocks, err := b.heap.spill.write(p)
		if err != nil {
			return false, err
		}
		for i, at := range blocks {
			b.segs = append(b.segs, segment{at: at, end: size + int64(min(len(p), (i+1)*maxBlock))})
		}
		return false, nil
	}
	keep = keep && len(p) == cap(p) // a short tail must not hold a whole buffer
	if !keep {
		p = slices.Clip(slices.Clone(p))
	}
	b.segs = append(b.segs, segment{p: p, end: size + int64(len(p))})
	return keep, nil
}

func (b *memory) Truncate(size int64) error {
	var freed int64
	var blocks []block
	for b.Size() > size {
		i := len(b.segs) - 1
		last := &b.segs[i]
		start := int64(0)
		if i > 0 {
			start = b.segs[i-1].end
		}
		if start < size {
			if last.p != nil {
				last.p = last.p[:size-start] // its memory stays in use
			}
			last.end = size
			break
		}
		freed, blocks = last.free(freed, blocks)
		b.segs = b.segs[:i]
	}
	b.heap.release(freed, blocks)
	return nil
}

// free adds what s uses to the bytes of memory and the blocks that will be released.
func (s *segment) free(bytes int64, blocks []block) (int64, []block) {
	if s.p == nil {
		return bytes, append(blocks, s.at)
	}
	n := cap(s.p)
	s.p = nil
	return bytes + int64(n), blocks
}

func (b *memory) Section(from, to int64) (io.ReadCloser, error) {
	// A finished blob does not change, and an upload only extends its slice. The
	// reader can therefore use the current slice header.
	return &memReader{segs: b.segs, spill: b.heap.spill, off: from, end: min(to, b.Size())}, nil
}

func (b *memory) Close() error { return nil }

// drop releases the bytes.
func (b *memory) drop() {
	var freed int64
	var blocks []block
	for i := range b.segs {
		freed, blocks = b.segs[i].free(freed, blocks)
	}
	b.segs = nil
	b.heap.release(freed, blocks)
}

type memReader struct {
	segs     []segment
	spill    *spill
	off, end int64
}

func (r *memReader) Read(p []byte) (int, error) {
	if r.off >= r.end {
		return 0, io.EOF
	}
	i := sort.Search(len(r.segs), func(i int) bool { return r.segs[i].end > r.off })
	start := int64(0)
	if i > 0 {
		start = r.segs[i-1].end
	}
	s := &r.segs[i]
	p = p[:min(int64(len(p)), r.end-r.off, s.end-r.off)]
	var n int
	var err error
	if s.p != nil {
		n = copy(p, s.p[r.off-start:])
	} else {
		n, err = r.spill.read(p, s.at, r.off-start)
	}
	r.off += int64(n)
	return n, err
}

func (r *memReader) Close() error { return nil }
