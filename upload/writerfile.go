package upload

import (
	"context"
	"fmt"
	"io"

	"gcsup/chunk"
)

// ReadFrom writes the bytes of r until EOF.
//
// If r is a regular file and nothing was written before, it is sent from its current
// offset to its end without a copy in memory. r may be an *[os.File], or a file of an
// [io/fs.FS] with the methods ReadAt and Seek. [io.Copy] calls ReadFrom.
//
// ReadFrom of such a file returns when the service has committed all of it but the
// last bytes, at most 256 KiB, which are copied. The file's offset is then at its
// end, and the caller may close it. If the session is lost before, the file is read
// again. If the file changes meanwhile, the error is [session.ErrSourceChanged]. So
// that a change shows, the latest changes of the file are first written to its disk
// (fsync).
func (w *Writer) ReadFrom(r io.Reader) (int64, error) {
	first, n, err := w.fileFrom(r)
	if err != nil {
		return 0, err
	}
	if first == nil {
		return io.Copy(struct{ io.Writer }{w}, r)
	}
	if err := w.start(first); err != nil {
		return 0, err
	}
	select {
	case tail := <-first.tail:
		if _, err := w.Write(tail); err != nil {
			return n - int64(len(tail)), err
		}
	case <-w.failed.Done():
		return 0, context.Cause(w.failed)
	}
	_, err = r.(io.Seeker).Seek(n, io.SeekCurrent)
	return n, err
}

// fileFrom returns the rest of the file r and the number of its bytes. It is nil if r is not
// such a file, or too short for a request that is not the last.
func (w *Writer) fileFrom(r io.Reader) (*firstFile, int64, error) {
	w.mu.Lock()
	started := w.state != writerNew
	w.mu.Unlock()
	f, ok := r.(interface {
		chunk.File
		io.Seeker
	})
	if started || !ok || w.Gzip || w.u.opts.Spool.used() {
		return nil, 0, nil
	}
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return nil, 0, nil
	}
	offset, err := f.Seek(0, io.SeekCurrent)
	if err != nil {
		return nil, 0, fmt.Errorf("upload: %w: %w", chunk.ErrRead, err)
	}
	if info.Size()-offset <= chunk.Granularity {
		return nil, 0, nil
	}
	src, err := chunk.FromFile(f, offset)
	if err != nil {
		return nil, 0, nil // it has content after its size, and is read as a stream
	}
	return &firstFile{src: src, tail: make(chan []byte, 1)}, src.Size(), nil
}

// firstFile is a file at the beginning of the content of a Writer.
type firstFile struct {
	src  *chunk.Source
	tail chan []byte // receives its last bytes when the bytes before are committed
}
