package upload

import (
	"context"
	"fmt"
	"io"

	"gcsup/chunk"
	"gcsup/session"
)

// gzipContent is a file that is compressed while it is sent. Like a stream, it keeps
// a window of the bytes that the server has not committed. To start over, or to
// resume, the file is compressed again.
//
// file.sum has hashed the bytes of the file. All offsets and checksums below are
// those of the compressed bytes.
type gzipContent struct {
	file   *fileContent
	with   compressor
	memory *chunk.Memory
	window int
	marks  *sourceOffsets

	body   *chunk.Body // nil unless the file is being compressed
	reader *gzipReader
	stream streamContent

	size   int64              // -1 while it is not known
	crc32c uint32             // of all bytes, if size is known
	saved  []chunk.Checkpoint // of the session being resumed, ascending; must still be compared
	end    int64              // compressed size in that session; 0 if it is unknown
}

var _ content = (*gzipContent)(nil)

func newGzipContent(file *fileContent, u *Uploader, marks *sourceOffsets) *gzipContent {
	marks.reset(file.src.Size(), sourceMark{})
	return &gzipContent{file: file, with: u.compressor, memory: u.memory, window: u.opts.Window, marks: marks, size: -1}
}

func (g *gzipContent) total() int64     { return g.size }
func (g *gzipContent) replayable() bool { return true }
func (g *gzipContent) isCopy() bool     { return g.file.copied }
func (g *gzipContent) proven()          { g.file.copied = false }

func (g *gzipContent) unchanged(ctx context.Context) error { return g.file.unchanged(ctx) }

// open begins to compress the file. If it was compressed before, file.sum compares
// the bytes.
func (g *gzipContent) open() {
	g.close()
	g.file.sum.Rewind(0)
	g.body = g.file.src.Body(chunk.Range{To: g.file.src.Size()}, g.file.sum)
	g.reader = g.with.reader(g.body)
}

// close stops compressing.
func (g *gzipContent) close() {
	if g.body == nil {
		return
	}
	g.reader.stop()
	_ = g.body.Close() // first: it ends a Read
	if g.stream.stream != nil {
		g.stream.close()
	}
	g.body, g.reader, g.stream = nil, nil, streamContent{}
}

// restart makes part(0) possible again, for a new session. The compressed bytes may
// differ from those of the previous session.
func (g *gzipContent) restart() {
	g.close()
	g.marks.reset(g.file.src.Size(), sourceMark{})
	g.size, g.crc32c, g.saved, g.end = -1, 0, nil, 0
}

// begin begins to compress the file for a new session.
func (g *gzipContent) begin() error {
	g.restart()
	g.file.copied = false // the server has no bytes that could differ
	g.open()
	return g.split(chunk.Checkpoint{})
}

// split makes parts of the compressed bytes after a checkpoint.
func (g *gzipContent) split(from chunk.Checkpoint) error {
	g.marks.reset(g.file.src.Size(), sourceMark{made: g.reader.made, read: g.reader.read})
	g.reader.marks = g.marks
	stream, err := g.memory.ResumeStream(g.reader, g.window, from)
	g.stream = streamContent{stream: stream, done: from.Offset}
	return err
}

func (g *gzipContent) part(ctx context.Context, offset, limit int64) (part, error) {
	if offset == 0 && (g.body == nil || !g.stream.replayable()) {
		if err := g.begin(); err != nil {
			return part{}, err
		}
	}
	if g.body == nil {
		return part{}, fmt.Errorf("%w: the server requests byte %d, which it had committed", session.ErrProtocol, offset)
	}
	if err := g.fill(ctx); err != nil {
		return part{}, err
	}
	return g.stream.part(ctx, offset, limit)
}

// fill waits for the next compressed bytes, and compares them with those of the
// session being resumed.
func (g *gzipContent) fill(ctx context.Context) error {
	if g.stream.cur != nil {
		return nil
	}
	next, err := g.stream.stream.Next(ctx)
	if err != nil {
		if serr := g.body.Err(); serr != nil {
			return serr
		}
		return err
	}
	for len(g.saved) > 0 && g.saved[0].Offset <= next.To {
		if next.Checkpoint(g.saved[0].Offset) != g.saved[0] {
			return &otherCompressor{g.saved[0].Offset}
		}
		g.saved = g.saved[1:]
	}
	switch {
	case next.Last && (len(g.saved) > 0 || g.end > 0 && next.To != g.end), !next.Last && g.end > 0 && next.To >= g.end:
		return &otherCompressor{next.To}
	case next.Last:
		g.size, g.crc32c = next.To, next.CRC32C
	}
	g.stream.cur = &next
	return nil
}

// otherCompressor is the error for compressed bytes that are not those of the
// session being resumed, although the file has not changed: another version of
// the program compresses it differently.
type otherCompressor struct{ offset int64 }

func (e *otherCompressor) Error() string {
	return fmt.Sprintf("this version of the program compresses the first %d bytes differently", e.offset)
}

// alone compresses the file up to the size of a window, and returns a function that
// returns a reader of the compressed bytes. The function is nil if they do not fit
// into the window.
func (g *gzipContent) alone(ctx context.Context) (func() io.Reader, error) {
	if err := g.begin(); err != nil {
		return nil, err
	}
	if err := g.fill(ctx); err != nil {
		return nil, err
	}
	cur := *g.stream.cur
	if !cur.Last {
		return nil, nil
	}
	return func() io.Reader { return cur.Reader(0, cur.To) }, nil
}

// load compresses a small file in memory.
func (g *gzipContent) load(ctx context.Context) ([]byte, error) {
	data, err := g.file.load(ctx)
	if err != nil {
		return nil, err
	}
	zipped := g.with.whole(data)
	g.size, g.crc32c = int64(len(zipped)), chunk.Update(0, zipped)
	g.marks.reset(g.file.src.Size(), sourceMark{made: g.size, read: int64(len(data))})
	return zipped, nil
}

// adopt continues the saved session of a Token.
func (g *gzipContent) adopt(t *session.Token) {
	g.restart() // a comparison may have compressed the file before
	g.saved = t.Checkpoints
	g.marks.reset(g.file.src.Size(), sourceMark{made: t.HighWater, read: t.Gzip.Source.Offset})
	if c := t.Checkpoint(t.Gzip.Size); t.Gzip.Size > 0 && c.Offset == t.Gzip.Size {
		g.end, g.size, g.crc32c = c.Offset, c.Offset, c.CRC32C
	}
}

// seek compresses the file again up to an offset of the saved session, and compares
// the bytes with its checkpoints. The last checkpoint is the end of what was sent,
// so that every committed byte is compared.
func (g *gzipContent) seek(ctx context.Context, offset int64) error {
	if offset == g.size {
		return nil // all bytes are committed
	}
	g.open()
	at := chunk.Checkpoint{}
	buf := make([]byte, chunk.Granularity)
	for base := chunk.Floor(offset); at.Offset < base; {
		stop := base
		if len(g.saved) > 0 {
			stop = min(stop, g.saved[0].Offset)
		}
		var err error
		at, err = g.hash(ctx, buf, at, stop, func(read, made int64) { g.file.reread(read, made, base) })
		switch {
		case err == io.EOF:
			return &otherCompressor{at.Offset}
		case err != nil:
			return err
		}
		if len(g.saved) > 0 && at.Offset == g.saved[0].Offset {
			if at != g.saved[0] {
				return &otherCompressor{at.Offset}
			}
			g.saved = g.saved[1:]
		}
	}
	if err := g.split(at); err != nil {
		return err
	}
	if err := g.fill(ctx); err != nil {
		return err
	}
	if g.stream.cur.To < offset {
		return &otherCompressor{g.stream.cur.To}
	}
	return nil
}

// hash hashes compressed bytes up to the offset stop. At the end of the file it returns
// io.EOF. report gets how many bytes of the file each step read, and the compressed
// offset after it.
func (g *gzipContent) hash(ctx context.Context, buf []byte, at chunk.Checkpoint, stop int64, report func(read, made int64)) (chunk.Checkpoint, error) {
	for at.Offset < stop {
		if ctx.Err() != nil {
			return at, context.Cause(ctx)
		}
		before := g.reader.read
		n, err := g.reader.Read(buf[:min(int64(len(buf)), stop-at.Offset)])
		at = chunk.Checkpoint{Offset: at.Offset + int64(n), CRC32C: chunk.Update(at.CRC32C, buf[:n])}
		report(g.reader.read-before, at.Offset)
		if err != nil {
			return at, err
		}
	}
	return at, nil
}

// digest compresses the whole file and returns the size and the CRC32C. It stops if
// the size exceeds limit.
func (g *gzipContent) digest(ctx context.Context, limit int64) (chunk.Checkpoint, error) {
	g.open()
	defer g.close()
	buf := make([]byte, chunk.Granularity)
	at, err := g.hash(ctx, buf, chunk.Checkpoint{}, limit+1, func(read, _ int64) {
		g.file.reread(read, g.reader.read, g.file.src.Size())
	})
	if err == io.EOF {
		g.size, g.crc32c = at.Offset, at.CRC32C
		err = nil
	}
	return at, err
}

func (g *gzipContent) whole(ctx context.Context) (uint32, error) {
	if g.size < 0 {
		if _, err := g.digest(ctx, maxObject); err != nil {
			return 0, err
		}
	}
	return g.crc32c, nil
}

func (g *gzipContent) committed(offset int64) {
	g.stream.committed(offset)
	g.marks.forget(offset)
}

func (g *gzipContent) prefix(offset int64) (uint32, bool) { return g.stream.prefix(offset) }

func (g *gzipContent) head(ctx context.Context, offset int64) io.Reader {
	return g.stream.head(ctx, offset)
}

// checkpoint returns the checksum at an offset in the next bytes to send, or zero if the
// offset is not in them.
func (g *gzipContent) checkpoint(offset int64) chunk.Checkpoint {
	cur := g.stream.cur
	if cur == nil || offset < cur.From || offset > cur.To {
		return chunk.Checkpoint{}
	}
	return cur.Checkpoint(offset)
}

// state returns the state of the file for a Token that is saved before the compressed
// bytes up to an offset are sent.
func (g *gzipContent) state(to int64) *session.GzipState {
	s := &session.GzipState{Size: max(g.size, 0)}
	s.Source, _ = g.file.sum.Nearest(g.marks.read(to))
	return s
}
