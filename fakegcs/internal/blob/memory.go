package blob

import (
	"io"
	"slices"
	"sort"
)

// NewMemory returns a blob in memory. Its last Release calls freed with the number of
// released bytes.
func NewMemory(freed func(n int64)) *Blob {
	m := &memory{}
	return &Blob{storage: m, remove: func() error { freed(m.drop()); return nil }}
}

// memory keeps the appended slices, so that nothing is copied when it grows.
type memory struct {
	segs [][]byte
	ends []int64 // ends[i] is the offset after segs[i]
}

func (b *memory) Size() int64 {
	if len(b.ends) == 0 {
		return 0
	}
	return b.ends[len(b.ends)-1]
}

func (b *memory) Append(p []byte, keep bool) (bool, error) {
	if len(p) == 0 {
		return false, nil
	}
	keep = keep && len(p) == cap(p) // a short tail must not hold a whole buffer
	if !keep {
		p = slices.Clip(slices.Clone(p))
	}
	b.ends = append(b.ends, b.Size()+int64(len(p)))
	b.segs = append(b.segs, p)
	return keep, nil
}

func (b *memory) Truncate(size int64) error {
	for b.Size() > size {
		i := len(b.segs) - 1
		start := b.ends[i] - int64(len(b.segs[i]))
		if start >= size {
			b.segs, b.ends = b.segs[:i], b.ends[:i]
			continue
		}
		b.segs[i], b.ends[i] = b.segs[i][:size-start], size
	}
	return nil
}

func (b *memory) Section(from, to int64) (io.ReadCloser, error) {
	// A finished blob does not change, and an upload only extends its slices. The
	// reader can therefore use the current slice headers.
	return &memReader{segs: b.segs, ends: b.ends, off: from, end: min(to, b.Size())}, nil
}

func (b *memory) Close() error { return nil }

// drop releases the bytes, even if there are references to the blob, and returns
// their number.
func (b *memory) drop() int64 {
	n := b.Size()
	b.segs, b.ends = nil, nil
	return n
}

type memReader struct {
	segs     [][]byte
	ends     []int64
	off, end int64
}

func (r *memReader) Read(p []byte) (int, error) {
	if r.off >= r.end {
		return 0, io.EOF
	}
	i := sort.Search(len(r.ends), func(i int) bool { return r.ends[i] > r.off })
	start := r.ends[i] - int64(len(r.segs[i]))
	n := copy(p[:min(int64(len(p)), r.end-r.off)], r.segs[i][r.off-start:])
	r.off += int64(n)
	return n, nil
}

func (r *memReader) Close() error { return nil }
