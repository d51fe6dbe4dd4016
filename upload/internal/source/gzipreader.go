package source

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"sync"
	"sync/atomic"
	"time"

	"gcsup/chunk"
	"gcsup/upload/internal/content"
)

// gzipReader compresses the bytes of a reader. The same bytes always have the same
// compressed bytes, unless compress/flate changes: the header has no name and no
// time, and the result does not depend on the sizes of the reads.
type gzipReader struct {
	r     io.Reader
	c     Compressor
	zw    *gzip.Writer // nil after the end was compressed
	block []byte
	out   bytes.Buffer // compressed and not yet returned
	err   error        // returned after the bytes in out
	marks *Offsets     // nil if they are not needed
	empty int          // reads in a row that returned nothing
	ended atomic.Bool  // see stop
	head  []byte       // the first bytes of r

	read, made int64 // bytes read of r, and compressed bytes so far
}

// Compressor compresses bytes. Its zero value has the default level. Tests use
// another level to simulate another version of the program.
type Compressor struct{ Level int }

// gzipWriters keeps writers of the default level, because each uses more than 800 KB.
var gzipWriters sync.Pool

// writer returns a writer. The caller should call done after it is closed.
func (c Compressor) writer(w io.Writer) *gzip.Writer {
	if c.Level != 0 {
		zw, err := gzip.NewWriterLevel(w, c.Level)
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

func (c Compressor) done(zw *gzip.Writer) {
	if c.Level == 0 {
		zw.Reset(io.Discard)
		gzipWriters.Put(zw)
	}
}

// reader returns a reader of the compressed bytes of r.
func (c Compressor) reader(r io.Reader) *gzipReader {
	z := &gzipReader{r: r, c: c, block: make([]byte, chunk.Granularity)}
	z.zw = c.writer(&z.out)
	return z
}

// Reader returns a reader of the compressed bytes of r. stop makes its Read return after the
// current read of r.
func (c Compressor) Reader(r io.Reader) (zipped io.Reader, stop func()) {
	z := c.reader(r)
	return z, z.stop
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
	if n < 0 || n > len(z.block) {
		z.err = errors.New("the reader returned an invalid count")
		return
	}
	if z.empty++; n > 0 {
		z.empty = 0
	}
	if err == nil && z.empty >= maxEmptyReads {
		err = io.ErrNoProgress
	}
	z.head = append(z.head, z.block[:min(n, content.HeadSize-len(z.head))]...)
	before := z.out.Len()
	_, _ = z.zw.Write(z.block[:n]) // a bytes.Buffer does not fail
	z.read += int64(n)
	// As in stream.Stream, only a bare io.EOF is the end.
	if z.err = err; err == io.EOF {
		_ = z.zw.Close()
		z.c.done(z.zw)
		z.zw = nil
	}
	z.made += int64(z.out.Len() - before)
	if z.marks != nil {
		z.marks.add(offsetMark{made: z.made, read: z.read})
	}
}

// SetReadDeadline passes a deadline on to the source, which may not support it.
func (z *gzipReader) SetReadDeadline(t time.Time) error {
	if d, ok := z.r.(interface{ SetReadDeadline(time.Time) error }); ok {
		return d.SetReadDeadline(t)
	}
	return errors.ErrUnsupported
}
