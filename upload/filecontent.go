package upload

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"gcsup/chunk"
	"gcsup/session"
)

// rereadStep is the number of bytes after which a long comparison reports its
// progress. From a disk these are many reports per second, and one every few seconds
// from a slow file server.
const rereadStep = 8 << 20

// fileContent is a source that can be read again.
type fileContent struct {
	src      *chunk.Source
	identity chunk.Identity // of the bytes that sum has hashed
	sum      *chunk.PrefixCRC
	reread   func(n, offset, end int64) // called when n bytes before offset were read only for their checksum; the reading ends at end
	copied   bool                       // the session began with another file; the bytes are still to be compared
	settled  bool                       // every later change changes the identity, with these exceptions:
	unsynced bool                       // see chunk.Settled
	racy     bool                       // see chunk.Settled; identity has no change time
}

var _ content = (*fileContent)(nil)

func (f *fileContent) total() int64      { return f.src.Size() }
func (f *fileContent) replayable() bool  { return true }
func (f *fileContent) committed(n int64) { f.sum.Forget(n) }
func (f *fileContent) isCopy() bool      { return f.copied }
func (f *fileContent) proven()           { f.copied = false }

// part returns one long part up to the last multiple of 256 KiB, and then a tail of
// at most 256 KiB, which is sent in a separate request. The checksum of all bytes is
// then known, and the service can compare it before the object exists.
func (f *fileContent) part(_ context.Context, offset, limit int64) (part, error) {
	size := f.src.Size()
	if offset == 0 {
		f.restart()
		f.copied = false // the server has no bytes that could differ
	}
	f.sum.Rewind(offset)
	tail := chunk.LastBoundary(size)
	if offset >= tail {
		return f.tail(offset)
	}
	to := min(chunk.Floor(offset+limit), tail)
	if to-offset < chunk.Granularity {
		// The bytes from an unaligned offset to the next boundary are less than the service
		// accepts in a request that is not the last.
		if to += chunk.Granularity; to > tail {
			return f.tail(offset)
		}
	}
	rng := chunk.Range{From: offset, To: to}
	body := f.src.Body(rng, f.sum)
	return part{Range: rng, body: body, finish: body.Finish}, nil
}

// seek makes the checksum continue from a checkpoint of the bytes sent before. It
// reads the bytes between the checkpoint and offset.
func (f *fileContent) seek(ctx context.Context, from chunk.Checkpoint, offset int64) error {
	to, err := f.hash(ctx, from, offset)
	if err != nil {
		return err
	}
	f.sum = chunk.NewPrefixCRC(to)
	return nil
}

// restart makes the checksum begin at byte 0 if it began at a checkpoint.
func (f *fileContent) restart() {
	if _, ok := f.sum.Nearest(0); !ok {
		f.sum = chunk.NewPrefixCRC(chunk.Checkpoint{})
	}
}

func (f *fileContent) tail(offset int64) (part, error) {
	rng := chunk.Range{From: offset, To: f.src.Size()}
	body := f.src.Body(rng, f.sum)
	defer body.Close()
	data := make([]byte, rng.Len())
	if _, err := io.ReadFull(body, data); err != nil {
		return part{}, err
	}
	return part{
		Range: rng, last: true, crc32c: f.sum.Sum(),
		body:   bytes.NewReader(data),
		finish: func() error { return nil },
	}, nil
}

func (f *fileContent) whole(ctx context.Context) (uint32, error) {
	return f.crcOf(ctx, f.src.Size())
}

func (f *fileContent) prefix(offset int64) (uint32, bool) {
	from, ok := f.sum.Nearest(offset)
	if !ok || offset-from.Offset >= chunk.Granularity {
		return 0, false
	}
	to, err := f.hash(context.Background(), from, offset)
	return to.CRC32C, err == nil
}

// crcOf returns the CRC32C of the bytes before offset. It reads them if necessary.
func (f *fileContent) crcOf(ctx context.Context, offset int64) (uint32, error) {
	from, _ := f.sum.Nearest(offset) // the zero Checkpoint if there is none
	to, err := f.hash(ctx, from, offset)
	return to.CRC32C, err
}

func (f *fileContent) head(ctx context.Context, offset int64) io.Reader {
	if offset > headLimit && !f.copied {
		return nil
	}
	return &headReader{ctx: ctx, f: f, end: offset}
}

// headReader reads the first bytes of a source until ctx ends.
type headReader struct {
	ctx     context.Context
	f       *fileContent
	at, end int64
}

func (h *headReader) Read(p []byte) (int, error) {
	if h.at == h.end {
		return 0, io.EOF
	}
	if h.ctx.Err() != nil {
		return 0, context.Cause(h.ctx)
	}
	n, err := h.f.src.ReadAt(p[:min(int64(len(p)), h.end-h.at)], h.at)
	h.at += int64(n)
	h.f.reread(int64(n), h.at, h.end)
	return n, err
}

// remember sets the identity. For a racy file it removes the change time, so that
// each resume compares the bytes.
func (f *fileContent) remember(id chunk.Identity) {
	if f.racy {
		id.ChangeTimeNS = 0
	}
	f.identity = id
}

// unchanged compares the identity with the one at the beginning. If the file is racy,
// or only the change time differs, it compares the bytes: a chmod changes the change
// time, and so does an edit after which the modification time was restored.
func (f *fileContent) unchanged(ctx context.Context) error {
	return f.unchangedFrom(ctx, func() chunk.Checkpoint {
		// While a file is being compressed, bytes are still written to sum.
		hashed, _ := f.sum.Nearest(f.sum.Offset())
		return hashed
	})
}

// unchangedFrom is unchanged for the bytes whose checksum hashed returns. It calls
// hashed after it has read the identity.
func (f *fileContent) unchangedFrom(ctx context.Context, hashed func() chunk.Checkpoint) error {
	now, err := f.src.Identity()
	if err != nil {
		return err
	}
	change := f.identity.Compare(now)
	if change == chunk.Same && f.racy {
		change = chunk.ChangeTimeOnly
	}
	switch change {
	case chunk.Same:
		return nil
	case chunk.ChangeTimeOnly:
		if err := f.compare(ctx, hashed()); err != nil {
			return err
		}
		f.remember(now)
		return nil
	}
	return fmt.Errorf("%w: its size or modification time has changed", session.ErrSourceChanged)
}

// compare reads the source from the beginning and compares it with ascending
// checksums of an earlier run. It checks all of them, because a resume may start from
// any of them.
func (f *fileContent) compare(ctx context.Context, checksums ...chunk.Checkpoint) error {
	var got chunk.Checkpoint
	for _, want := range checksums {
		var err error
		if got, err = f.hashOf(ctx, got, want.Offset, checksums[len(checksums)-1].Offset); err != nil {
			return err
		}
		if got != want {
			return fmt.Errorf("%w: its first %d bytes have changed", session.ErrSourceChanged, want.Offset)
		}
	}
	return nil
}

// compareLast compares the bytes between the last two checksums of an earlier run.
func (f *fileContent) compareLast(ctx context.Context, checksums []chunk.Checkpoint) error {
	if len(checksums) == 0 {
		return nil
	}
	from, last := chunk.Checkpoint{}, checksums[len(checksums)-1]
	if len(checksums) > 1 {
		from = checksums[len(checksums)-2]
	}
	got, err := f.hash(ctx, from, last.Offset)
	if err != nil {
		return err
	}
	if got != last {
		return fmt.Errorf("%w: its bytes from %d to %d have changed", session.ErrSourceChanged, from.Offset, last.Offset)
	}
	return nil
}

// hash continues a checksum up to another offset.
func (f *fileContent) hash(ctx context.Context, from chunk.Checkpoint, to int64) (chunk.Checkpoint, error) {
	return f.hashOf(ctx, from, to, to)
}

// hashOf is hash for a part of a comparison that ends at end.
func (f *fileContent) hashOf(ctx context.Context, from chunk.Checkpoint, to, end int64) (chunk.Checkpoint, error) {
	for from.Offset < to {
		next, err := f.src.Hash(ctx, from, min(from.Offset+rereadStep, to))
		if err != nil {
			return next, err
		}
		f.reread(next.Offset-from.Offset, next.Offset, end)
		from = next
	}
	return from, nil
}

// load reads a small file whole.
func (f *fileContent) load(ctx context.Context) ([]byte, error) {
	size := f.src.Size()
	data := make([]byte, size)
	if err := f.src.ReadFull(data, 0); err != nil {
		return nil, err
	}
	f.sum = chunk.NewPrefixCRC(chunk.Checkpoint{})
	if _, err := f.sum.Write(data); err != nil {
		return nil, err
	}
	return data, f.unchanged(ctx)
}
