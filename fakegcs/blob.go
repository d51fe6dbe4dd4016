package fakegcs

import (
	"errors"
	"io"
	"os"
	"slices"
	"sort"
	"sync/atomic"
)

// quantum is the unit in which the service commits the bytes of an upload.
const quantum = 256 << 10

// errDiscarded is what a read gets when [Options.Discard] threw the bytes away.
var errDiscarded = errors.New("fakegcs: the server runs in discard mode and keeps no object bytes")

// blob is the bytes of an object or of an unfinished upload. It only grows.
// Append and truncate are for its one owner, an upload; once it belongs to an
// object it is only read, by as many as like.
type blob interface {
	// append adds p, of which the blob becomes the owner when keep is set:
	// then the caller must not change p any more. It reports whether it kept p.
	append(p []byte, keep bool) (kept bool, err error)
	truncate(size int64) error
	size() int64
	// section reads the bytes [from, to); the caller closes it.
	section(from, to int64) (io.ReadCloser, error)
	// close lets go of what writing needs. The bytes stay.
	close() error
}

// sharedBlob counts the objects and uploads that refer to a blob, so that a
// copy of an object costs nothing. The last one to let go removes the bytes.
type sharedBlob struct {
	blob
	id     string // names it in the directory; "" in memory
	refs   atomic.Int32
	remove func() error // nil: there is nothing to do
}

func (b *sharedBlob) retain() *sharedBlob {
	b.refs.Add(1)
	return b
}

// release gives up one reference. A failure to remove the file costs only disk
// space, and the next start of the server collects it.
func (b *sharedBlob) release() {
	if b.refs.Add(-1) == 0 && b.remove != nil {
		_ = b.remove()
	}
}

// memBlob keeps segments as they came; nothing is copied when it grows.
type memBlob struct {
	segs [][]byte
	ends []int64 // ends[i] is the offset after segs[i]
}

func (b *memBlob) size() int64 {
	if len(b.ends) == 0 {
		return 0
	}
	return b.ends[len(b.ends)-1]
}

func (b *memBlob) append(p []byte, keep bool) (bool, error) {
	if len(p) == 0 {
		return false, nil
	}
	keep = keep && len(p) == cap(p) // a short tail must not hold a whole buffer
	if !keep {
		p = slices.Clip(slices.Clone(p))
	}
	b.ends = append(b.ends, b.size()+int64(len(p)))
	b.segs = append(b.segs, p)
	return keep, nil
}

func (b *memBlob) truncate(size int64) error {
	for b.size() > size {
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

func (b *memBlob) section(from, to int64) (io.ReadCloser, error) {
	// A finished blob does not change, and an upload's slices are only ever
	// extended, so the reader works on the slice headers of this moment.
	return &memReader{segs: b.segs, ends: b.ends, off: from, end: min(to, b.size())}, nil
}

func (b *memBlob) close() error { return nil }

// drop gives up the bytes, however long the blob itself is still referred to. It
// returns how many there were.
func (b *memBlob) drop() int64 {
	n := b.size()
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

// fileBlob keeps the bytes in a file, which is open only while it is written.
type fileBlob struct {
	path string
	n    int64
	f    *os.File
}

func (b *fileBlob) size() int64 { return b.n }

func (b *fileBlob) append(p []byte, _ bool) (bool, error) {
	if b.f == nil {
		f, err := os.OpenFile(b.path, os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return false, err
		}
		b.f = f
	}
	// WriteAt, not Write: after a write that failed half way the next one
	// starts where the committed bytes end.
	n, err := b.f.WriteAt(p, b.n)
	if err == nil {
		b.n += int64(n)
	}
	return false, err
}

func (b *fileBlob) truncate(size int64) error {
	if size >= b.n {
		return nil
	}
	if err := os.Truncate(b.path, size); err != nil {
		return err
	}
	b.n = size
	return nil
}

func (b *fileBlob) section(from, to int64) (io.ReadCloser, error) {
	if b.n == 0 {
		return io.NopCloser(eofReader{}), nil // an empty object has no file
	}
	f, err := os.Open(b.path)
	if err != nil {
		return nil, err
	}
	return fileSection{io.NewSectionReader(f, from, min(to, b.n)-from), f}, nil
}

func (b *fileBlob) close() error {
	if b.f == nil {
		return nil
	}
	f := b.f
	b.f = nil
	return f.Close()
}

type fileSection struct {
	*io.SectionReader
	file *os.File
}

func (s fileSection) Close() error { return s.file.Close() }

type eofReader struct{}

func (eofReader) Read([]byte) (int, error) { return 0, io.EOF }

// nullBlob only counts: discard mode.
type nullBlob struct{ n int64 }

func (b *nullBlob) size() int64                                 { return b.n }
func (b *nullBlob) append(p []byte, _ bool) (bool, error)       { b.n += int64(len(p)); return false, nil }
func (b *nullBlob) truncate(size int64) error                   { b.n = min(b.n, size); return nil }
func (b *nullBlob) section(int64, int64) (io.ReadCloser, error) { return nil, errDiscarded }
func (b *nullBlob) close() error                                { return nil }
