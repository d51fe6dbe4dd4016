package upload

import (
	"context"
	"fmt"
	"io"

	"gcsup/chunk"
	"gcsup/session"
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
	first, n, err := w.firstFile(r)
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

// firstFile returns the content of an upload that starts with the rest of the file r,
// and the number of its bytes. It is nil if r is not such a file, or too short for a
// request that is not the last.
func (w *Writer) firstFile(r io.Reader) (*fileThenStream, int64, error) {
	w.mu.Lock()
	started := w.state != writerNew
	w.mu.Unlock()
	f, ok := r.(interface {
		chunk.File
		io.Seeker
	})
	if started || !ok || w.Gzip {
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
	file := &fileContent{src: src, sum: chunk.NewPrefixCRC(chunk.Checkpoint{})}
	return &fileThenStream{file: file, base: chunk.LastBoundary(src.Size()), tail: make(chan []byte, 1)}, src.Size(), nil
}

// fileThenStream is a file followed by a stream. The last bytes of the file become
// the start of the stream. Until then the file can be read again.
type fileThenStream struct {
	file   *fileContent
	base   int64       // offset of the stream in the object; a multiple of 256 KiB
	tail   chan []byte // receives the bytes of the file from base, when the bytes before are committed
	stream *streamContent

	// passed reports that tail was sent. The file is not read afterwards.
	passed bool
	crc32c uint32 // of the bytes before base; valid if passed
}

var _ content = (*fileThenStream)(nil)

// settle makes sure that a change of the file shows in its identity, and notes the
// identity. A file that is racy is read again by pass. Nothing is read if the
// precondition of j does not hold, which its run reports.
func (f *fileThenStream) settle(ctx context.Context, j *job) error {
	if err := j.precondition.look(ctx, j.spec); err != nil || j.precondition.unmet() != nil {
		return err
	}
	s, err := j.settleSource(ctx, f.file.src)
	f.file.identity, f.file.racy = s.Identity, s.Racy
	return err
}

func (f *fileThenStream) total() int64 {
	if n := f.stream.total(); n >= 0 {
		return f.base + n
	}
	return -1
}

func (f *fileThenStream) replayable() bool { return !f.passed }
func (f *fileThenStream) isCopy() bool     { return false }
func (f *fileThenStream) proven()          {}

func (f *fileThenStream) part(ctx context.Context, offset, limit int64) (part, error) {
	if offset < f.base {
		return f.filePart(offset, limit)
	}
	if err := f.pass(ctx); err != nil {
		return part{}, err
	}
	p, err := f.stream.part(ctx, offset-f.base, limit)
	if err != nil {
		return part{}, err
	}
	p.From, p.To = p.From+f.base, p.To+f.base
	if p.last {
		p.crc32c = chunk.Combine(f.crc32c, p.crc32c, p.To-f.base)
	}
	return p, nil
}

// filePart is part for the bytes before base. A part that would be too short begins
// with bytes that the server already has. The server ignores them.
func (f *fileThenStream) filePart(offset, limit int64) (part, error) {
	rng := chunk.Range{From: offset, To: min(chunk.Floor(offset+limit), f.base)}
	if rng.Len() < chunk.Granularity {
		rng.From = chunk.Floor(offset)
		rng.To = rng.From + chunk.Granularity
	}
	if _, ok := f.file.sum.Nearest(rng.From); !ok {
		f.file.sum = chunk.NewPrefixCRC(chunk.Checkpoint{}) // for another session, from byte 0
	}
	f.file.sum.Rewind(rng.From)
	body := f.file.src.Body(rng, f.file.sum)
	return part{Range: rng, body: body, finish: body.Finish}, nil
}

// pass sends the end of the file to the stream. All bytes before it are committed.
func (f *fileThenStream) pass(ctx context.Context) error {
	if f.passed {
		return nil
	}
	tail := make([]byte, f.file.src.Size()-f.base)
	if err := f.file.src.ReadFull(tail, f.base); err != nil {
		return err
	}
	now, err := f.file.src.Identity()
	if err != nil {
		return err
	}
	if f.file.identity.Compare(now) != chunk.Same {
		return fmt.Errorf("%w: its size or one of its times has changed", session.ErrSourceChanged)
	}
	// The last pass need not have reached base, because the service may commit bytes of
	// an earlier request late.
	at, ok := f.file.sum.Nearest(f.base)
	if !ok || at.Offset != f.base {
		return fmt.Errorf("%w: %d bytes are committed of %d that were read", session.ErrUnexpectedData, f.base, at.Offset)
	}
	if f.file.racy {
		if err := f.file.compare(ctx, at); err != nil {
			return err
		}
	}
	f.passed, f.crc32c = true, at.CRC32C
	f.tail <- tail
	return nil
}

func (f *fileThenStream) committed(offset int64) {
	if offset <= f.base {
		f.file.committed(offset)
		return
	}
	f.stream.committed(offset - f.base)
}

func (f *fileThenStream) whole(ctx context.Context) (uint32, error) {
	crc, err := f.stream.whole(ctx)
	if err != nil {
		return 0, err
	}
	return chunk.Combine(f.crc32c, crc, f.stream.total()), nil
}

func (f *fileThenStream) prefix(offset int64) (uint32, bool) {
	if offset > f.base {
		crc, ok := f.stream.prefix(offset - f.base)
		return chunk.Combine(f.crc32c, crc, offset-f.base), ok && f.passed
	}
	at, ok := f.file.sum.Nearest(offset)
	return at.CRC32C, ok && at.Offset == offset
}

// head is nil: only a CRC32C is compared.
func (f *fileThenStream) head(context.Context, int64) io.Reader { return nil }

func (f *fileThenStream) unchanged(context.Context) error { return nil }
