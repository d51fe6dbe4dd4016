package sourcefile

import (
	"context"
	"io"
	"sync"
	"time"

	"gcsup/chunk"
)

// Reads are the reads of files that have begun and not returned. A read of a file whose server has died may never return,
// and does not fail either. A nil Reads records nothing. It is safe for concurrent use.
type Reads struct {
	mu      sync.Mutex
	pending map[*read]struct{}
}

// read is a read of the bytes or the metadata of a file.
type read struct {
	path  string
	since time.Time
}

// Begin records a read of path. The caller must call end when the read has returned.
func (r *Reads) Begin(path string) (end func()) {
	if r == nil {
		return func() {}
	}
	begun := &read{path, time.Now()}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pending == nil {
		r.pending = map[*read]struct{}{}
	}
	r.pending[begun] = struct{}{}
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.pending, begun)
	}
}

// Oldest returns the path of the read that began first, and when. Without a read, path is "".
func (r *Reads) Oldest() (path string, since time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for p := range r.pending {
		if path == "" || p.since.Before(since) {
			path, since = p.path, p.since
		}
	}
	return path, since
}

type readsKey struct{}

// WithReads returns a context for uploads that record the reads of their files in r.
func WithReads(ctx context.Context, r *Reads) context.Context {
	return context.WithValue(ctx, readsKey{}, r)
}

// ReadsOf returns the Reads of a context, or nil.
func ReadsOf(ctx context.Context) *Reads {
	r, _ := ctx.Value(readsKey{}).(*Reads)
	return r
}

// Record records the reads of s, as those of path, in r. It must be called before the first read.
func (s *File) Record(r *Reads, path string) {
	if r != nil {
		s.begin = func() func() { return r.Begin(path) }
		s.Source = chunk.FromReaderAt(recorded{s.Source, s.begin}, s.Size())
	}
}

// recorded is the bytes of a File whose reads are recorded.
type recorded struct {
	io.ReaderAt
	begin func() (end func())
}

func (r recorded) ReadAt(p []byte, off int64) (int, error) {
	defer r.begin()()
	return r.ReaderAt.ReadAt(p, off)
}
