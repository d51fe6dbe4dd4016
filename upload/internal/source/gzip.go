package source

import (
	"context"
	"fmt"
	"io"
	"math"

	"gcsup/chunk"
	"gcsup/internal/checksum"
	"gcsup/upload/internal/content"
	"gcsup/upload/internal/stream"
)

// Gzip is a file that is compressed while it is sent. Like a stream, it keeps a window
// of the bytes that the server has not committed. To start over, or to resume, the file
// is compressed again.
//
// file.sum has hashed the bytes of the file. All offsets and checksums below are
// those of the compressed bytes.
type Gzip struct {
	file    *File
	with    Compressor
	memory  *stream.Memory
	window  int
	offsets Offsets

	body   *chunk.Body // nil unless the file is being compressed
	stream Stream

	size   int64              // -1 while it is not known
	crc32c uint32             // of all bytes, if size is known
	saved  []chunk.Checkpoint // of the session being resumed, ascending; must still be compared
	end    int64              // compressed size in that session; 0 if it is unknown
}

var _ Resumable = (*Gzip)(nil)

// NewGzip returns the compressed content of a file, with windows of at most window bytes
// of memory.
func NewGzip(file *File, with Compressor, memory *stream.Memory, window int) *Gzip {
	g := &Gzip{file: file, with: with, memory: memory, window: window, offsets: Offsets{size: file.Total()}}
	g.reset(offsetMark{})
	return g
}

// Offsets returns the offsets in the file.
func (g *Gzip) Offsets() *Offsets { return &g.offsets }

// Most returns how many bytes the compressed file may have. Bytes that do not get smaller are stored with a few more.
func (g *Gzip) Most() int64 {
	n := g.file.Total()
	return n + n/1024 + chunk.Granularity
}

func (g *Gzip) Total() int64     { return g.size }
func (g *Gzip) Replayable() bool { return true }

func (g *Gzip) Identity() chunk.Identity { return g.file.Identity() }
func (g *Gzip) Copied() bool             { return g.file.Copied() }

func (g *Gzip) Changed(ctx context.Context, n int64) error { return g.file.Changed(ctx, n) }

// open begins to compress the file. If it was compressed before, file.sum compares
// the bytes.
func (g *Gzip) open() {
	g.Stop()
	g.file.sum.Rewind(0)
	g.body = g.file.src.Body(chunk.Range{To: g.file.Total()}, g.file.sum)
	g.stream = Stream{zipped: g.with.reader(g.body)}
}

// Stop stops compressing.
func (g *Gzip) Stop() {
	if g.body == nil {
		return
	}
	g.stream.zipped.stop()
	_ = g.body.Close() // first: it ends a Read
	if g.stream.stream != nil {
		g.stream.Close()
	}
	g.body, g.stream = nil, Stream{}
}

func (g *Gzip) Close() {
	g.Stop()
	g.file.Close()
}

// Restart makes Next(0) possible again. The compressed bytes may differ from those of the
// previous session.
func (g *Gzip) Restart() {
	g.reset(offsetMark{})
	g.file.Restart()
}

// reset forgets the compressed bytes. m is the first known pair of offsets.
func (g *Gzip) reset(m offsetMark) {
	g.Stop()
	g.offsets.reset(m)
	g.size, g.crc32c, g.saved, g.end = -1, 0, nil, 0
}

// begin begins to compress the file for a new session.
func (g *Gzip) begin() error {
	g.Restart()
	g.open()
	return g.split(chunk.Checkpoint{})
}

// split makes windows of the compressed bytes after a checkpoint.
func (g *Gzip) split(from chunk.Checkpoint) (err error) {
	zipped := g.stream.zipped
	g.offsets.restart(offsetMark{made: zipped.made, read: zipped.read})
	zipped.marks = &g.offsets
	g.stream.done = from.Offset
	g.stream.stream, err = g.memory.ResumeStream(zipped, g.window, from)
	return err
}

func (g *Gzip) Next(ctx context.Context, offset, limit int64) (content.Body, error) {
	if offset == 0 && (g.body == nil || !g.stream.Replayable()) {
		if err := g.begin(); err != nil {
			return content.Body{}, err
		}
	}
	if g.body == nil {
		return content.Body{}, committedBefore(offset)
	}
	if err := g.fill(ctx); err != nil {
		return content.Body{}, err
	}
	b, err := g.stream.Next(ctx, offset, limit)
	if err == nil && b.Last {
		err = g.file.Unchanged(ctx, g.file.hashed)
	}
	return b, err
}

// fill waits for the next compressed bytes, and compares them with those of the
// session being resumed.
func (g *Gzip) fill(ctx context.Context) error {
	if g.stream.cur != nil {
		return nil
	}
	if err := g.stream.fill(ctx); err != nil {
		return g.cause(err)
	}
	next := g.stream.cur
	for len(g.saved) > 0 && g.saved[0].Offset <= next.To {
		if next.Checkpoint(g.saved[0].Offset) != g.saved[0] {
			return g.Differ(ctx, g.saved[0].Offset)
		}
		g.saved = g.saved[1:]
	}
	switch {
	case next.Last && (len(g.saved) > 0 || g.end > 0 && next.To != g.end), !next.Last && g.end > 0 && next.To >= g.end:
		return g.Differ(ctx, next.To)
	case next.Last:
		g.size, g.crc32c = next.To, next.CRC32C
	}
	return nil
}

// cause returns the error of the file, if there is one. Otherwise it returns err, the error of the compressed bytes.
func (g *Gzip) cause(err error) error {
	if serr := g.body.Err(); serr != nil {
		return serr
	}
	return err
}

// OtherCompressor is the error for compressed bytes that are not those of the
// upload being resumed, although the file has not changed: another version of
// the program compresses it differently.
type OtherCompressor struct{ offset int64 }

func (e *OtherCompressor) Error() string {
	return fmt.Sprintf("this version of the program compresses the first %d bytes differently", e.offset)
}

// Differ returns the error for compressed bytes that, before an offset, are not those of the upload being resumed: an
// [OtherCompressor], unless the file has changed since it was compared with that of the upload.
func (g *Gzip) Differ(ctx context.Context, offset int64) error {
	if err := g.Unchanged(ctx); err != nil {
		return err
	}
	return &OtherCompressor{offset}
}

func (g *Gzip) LoadWindow(ctx context.Context) (content.Loaded, error) {
	return g.LoadHeld(ctx, func(*Stream) {})
}

// LoadHeld is LoadWindow for a file that may be divided. hold calls [Stream.Hold] of the compressed bytes. If the file
// is longer than its first window, the caller must call Continue of [Gzip.Held], or Divide.
func (g *Gzip) LoadHeld(ctx context.Context, hold func(*Stream)) (content.Loaded, error) {
	if err := g.begin(); err != nil {
		return content.Loaded{}, err
	}
	hold(&g.stream)
	if err := g.fill(ctx); err != nil || !g.stream.cur.Last {
		return content.Loaded{}, err
	}
	return g.stream.loaded(), g.file.Unchanged(ctx, g.file.hashed)
}

// Held returns the compressed bytes after LoadHeld.
func (g *Gzip) Held() *Stream { return &g.stream }

// Divide makes parts of the compressed bytes, from their beginning, as [Stream.Divide] does. If LoadHeld was not called
// before, or parts were already made, the file is compressed again.
func (g *Gzip) Divide(least int64, sizes stream.Sizes) error {
	if g.stream.cur == nil {
		g.open()
		if err := g.split(chunk.Checkpoint{}); err != nil {
			return err
		}
	}
	g.stream.Divide(least, sizes)
	return nil
}

// NextPart is [Stream.NextPart].
func (g *Gzip) NextPart(ctx context.Context) (*Part, chunk.Range, error) {
	part, rng, err := g.stream.NextPart(ctx)
	if err != nil {
		return nil, chunk.Range{}, g.cause(err)
	}
	return part, rng, nil
}

// Skip notes that the bytes of rng were compressed only for their checksum. The comparison ends at end. The offsets
// before rng are forgotten, although the service may not have all parts before it: a long file has many of them, and
// without them, an estimate is only less exact.
func (g *Gzip) Skip(rng chunk.Range, end int64) {
	g.file.reread(g.offsets.read(rng.To)-g.offsets.read(rng.From), rng.To, end)
	g.offsets.Forget(rng.From)
}

// Unchanged is [File.Unchanged] for the bytes that were compressed.
func (g *Gzip) Unchanged(ctx context.Context) error { return g.file.Unchanged(ctx, g.file.hashed) }

// Load compresses a small file in memory.
func (g *Gzip) Load(ctx context.Context) (content.Loaded, error) {
	plain, err := g.file.Load(ctx)
	if err != nil {
		return plain, err
	}
	data, err := io.ReadAll(g.with.reader(plain.Open()))
	l := loaded(data, checksum.Update(0, data))
	g.size, g.crc32c = l.Size, l.CRC32C
	g.offsets.reset(offsetMark{made: l.Size, read: plain.Size})
	return l, err
}

// CompareAll compares all bytes of the file that were sent.
func (g *Gzip) CompareAll(ctx context.Context, s Saved) error {
	err := g.file.compare(ctx, chunk.Checkpoint{}, s.Compression.Source)
	if err == nil {
		g.file.copied = false
	}
	return err
}

// CompareLast compares nothing, because Seek compares every checkpoint.
func (g *Gzip) CompareLast(context.Context, Saved) error { return nil }

func (g *Gzip) Adopt(s Saved) {
	g.reset(offsetMark{made: s.Sent, read: s.Compression.Source.Offset}) // a comparison may have compressed the file before
	g.saved, g.file.adopted = s.Checkpoints, true
	if c := s.last(s.Compression.Size); s.Compression.Size > 0 && c.Offset == s.Compression.Size {
		g.end, g.size, g.crc32c = c.Offset, c.Offset, c.CRC32C
	}
}

// Seek compresses the file again up to offset, and compares the bytes with the
// checkpoints. The last checkpoint is the end of what was sent, so that every committed
// byte is compared.
func (g *Gzip) Seek(ctx context.Context, offset int64) error {
	if offset == g.size {
		return nil // all bytes are committed
	}
	g.open()
	at := chunk.Checkpoint{}
	for base := chunk.Floor(offset); at.Offset < base; {
		stop := base
		if len(g.saved) > 0 {
			stop = min(stop, g.saved[0].Offset)
		}
		var err error
		at, err = g.hash(ctx, at, stop, func(read, made int64) { g.file.reread(read, made, base) })
		switch {
		case err == io.EOF:
			return g.Differ(ctx, at.Offset)
		case err != nil:
			return err
		}
		if len(g.saved) > 0 && at.Offset == g.saved[0].Offset {
			if at != g.saved[0] {
				return g.Differ(ctx, at.Offset)
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
		return g.Differ(ctx, g.stream.cur.To)
	}
	return nil
}

// hash hashes compressed bytes up to the offset stop. At the end of the file it returns
// io.EOF. report gets how many bytes of the file each step read, and the compressed
// offset after it.
func (g *Gzip) hash(ctx context.Context, at chunk.Checkpoint, stop int64, report func(read, made int64)) (chunk.Checkpoint, error) {
	zipped, buf := g.stream.zipped, make([]byte, chunk.Granularity)
	for at.Offset < stop {
		if ctx.Err() != nil {
			return at, context.Cause(ctx)
		}
		before := zipped.read
		n, err := zipped.Read(buf[:min(int64(len(buf)), stop-at.Offset)])
		at = chunk.Checkpoint{Offset: at.Offset + int64(n), CRC32C: checksum.Update(at.CRC32C, buf[:n])}
		report(zipped.read-before, at.Offset)
		if err != nil {
			return at, err
		}
	}
	return at, nil
}

// digest compresses the whole file and returns the size and the CRC32C. It stops at the
// offset stop.
func (g *Gzip) digest(ctx context.Context, stop int64) (chunk.Checkpoint, error) {
	g.open()
	defer g.Stop()
	at, err := g.hash(ctx, chunk.Checkpoint{}, stop, func(read, _ int64) {
		g.file.reread(read, g.stream.zipped.read, g.file.Total())
	})
	if err == io.EOF {
		g.size, g.crc32c = at.Offset, at.CRC32C
		err = nil
	}
	return at, err
}

func (g *Gzip) Whole(ctx context.Context) (chunk.Checkpoint, error) {
	if g.size < 0 {
		return g.digest(ctx, math.MaxInt64)
	}
	return chunk.Checkpoint{Offset: g.size, CRC32C: g.crc32c}, nil
}

func (g *Gzip) Equal(ctx context.Context, c chunk.Checkpoint) (bool, error) {
	g.file.noteRacy()
	whole, err := g.digest(ctx, c.Offset+1)
	if err != nil || whole != c {
		return false, err
	}
	err = g.file.Unchanged(ctx, g.file.hashed)
	return err == nil, err
}

func (g *Gzip) Committed(offset int64) {
	g.stream.Committed(offset)
	g.offsets.Forget(offset)
}

func (g *Gzip) Compare(ctx context.Context, p content.Prefix, reread bool) (content.Verdict, error) {
	v, err := g.stream.Compare(ctx, p, reread)
	if v == content.Same {
		g.file.copied = false
	}
	return v, err
}

func (g *Gzip) Newest(_, to int64) chunk.Checkpoint {
	if !g.stream.holds(to) {
		return chunk.Checkpoint{}
	}
	return g.stream.cur.Checkpoint(to)
}

func (g *Gzip) Compression(to int64) (int64, chunk.Checkpoint) {
	read, _ := g.file.sum.Nearest(g.offsets.read(to))
	return max(g.size, 0), read
}
