package upload

import (
	"bytes"
	"compress/gzip"
	"io"
	"io/fs"
	"sync"
	"sync/atomic"
	"time"

	"gcsup/chunk"
)

// gzipReader compresses the bytes of a reader. The same bytes always have the same
// compressed bytes, unless compress/flate changes: the header has no name and no
// time, and the result does not depend on the sizes of the reads.
type gzipReader struct {
	r     io.Reader
	c     compressor
	zw    *gzip.Writer // nil after the end was compressed
	block []byte
	out   bytes.Buffer   // compressed and not yet returned
	err   error          // returned after the bytes in out
	marks *sourceOffsets // nil if they are not needed
	empty int            // reads in a row that returned nothing
	ended atomic.Bool    // see stop

	read, made int64 // bytes read of r, and compressed bytes so far

	mu   sync.Mutex
	head []byte // the first bytes of r
}

// compressor compresses bytes. Its zero value has the default level. Tests use
// another level to simulate another version of the program.
type compressor struct{ level int }

// gzipWriters keeps writers of the default level, because each uses more than 800 KB.
var gzipWriters sync.Pool

// writer returns a writer. The caller should call done after it is closed.
func (c compressor) writer(w io.Writer) *gzip.Writer {
	if c.level != 0 {
		zw, err := gzip.NewWriterLevel(w, c.level)
		if err != nil {
			panic(err) // the level is a constant
		}
		return zw
	}
	if zw, ok := gzipWriters.Get().(*gzip.Writer); ok {
		zw.Reset(w)
		return zw
	}
	return gzip.NewWriter(w)
}

func (c compressor) done(zw *gzip.Writer) {
	if c.level == 0 {
		zw.Reset(io.Discard)
		gzipWriters.Put(zw)
	}
}

// whole returns the compressed bytes of data. A gzipReader returns the same.
func (c compressor) whole(data []byte) []byte {
	var out bytes.Buffer
	zw := c.writer(&out)
	_, _ = zw.Write(data)
	_ = zw.Close()
	c.done(zw)
	return out.Bytes()
}

// reader returns a reader of the compressed bytes of r.
func (c compressor) reader(r io.Reader) *gzipReader {
	z := &gzipReader{r: r, c: c, block: make([]byte, chunk.Granularity)}
	z.zw = c.writer(&z.out)
	return z
}

func (z *gzipReader) Read(p []byte) (int, error) {
	for z.out.Len() == 0 {
		switch {
		case z.err != nil:
			return 0, z.err
		case z.ended.Load():
			return 0, fs.ErrClosed
		}
		z.fill()
	}
	return z.out.Read(p)
}

// stop makes Read return after the current read of the source. It may be called from
// any goroutine.
func (z *gzipReader) stop() { z.ended.Store(true) }

// maxEmptyReads is how many times in a row a source may return 0 bytes and no error.
const maxEmptyReads = 100

// fill compresses one more block.
func (z *gzipReader) fill() {
	n, err := z.r.Read(z.block)
	if z.empty++; n > 0 {
		z.empty = 0
	}
	if err == nil && z.empty >= maxEmptyReads {
		err = io.ErrNoProgress
	}
	z.keepHead(z.block[:n])
	before := z.out.Len()
	_, _ = z.zw.Write(z.block[:n]) // a bytes.Buffer does not fail
	z.read += int64(n)
	// As in chunk.Stream, only a bare io.EOF is the end.
	if z.err = err; err == io.EOF {
		_ = z.zw.Close()
		z.c.done(z.zw)
		z.zw = nil
	}
	z.made += int64(z.out.Len() - before)
	if z.marks != nil {
		z.marks.add(sourceMark{made: z.made, read: z.read})
	}
}

func (z *gzipReader) keepHead(p []byte) {
	z.mu.Lock()
	defer z.mu.Unlock()
	if missing := chunk.HeadSize - len(z.head); missing > 0 {
		z.head = append(z.head, p[:min(len(p), missing)]...)
	}
}

// first returns the first bytes that were read.
func (z *gzipReader) first() []byte {
	z.mu.Lock()
	defer z.mu.Unlock()
	return z.head
}

// SetReadDeadline passes a deadline on to the source, which may not support it.
func (z *gzipReader) SetReadDeadline(t time.Time) error { return setReadDeadline(z.r, t) }
