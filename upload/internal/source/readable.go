package source

import (
	"context"
	"crypto/md5"
	"fmt"
	"io/fs"

	"gcsup/chunk"
	"gcsup/internal/sourcefile"
	"gcsup/session"
)

// Reread is called when n bytes before offset were read only for their checksum. The
// reading ends at end.
type Reread func(n, offset, end int64)

// rereadStep is the number of bytes after which a long comparison reports its
// progress. From a disk these are many reports per second, and one every few seconds
// from a slow file server.
const rereadStep = 8 << 20

// readable is bytes that can be read at any offset.
type readable struct {
	src    *sourcefile.File
	reread Reread
}

// Info describes the file. It is nil for bytes that are not in a file.
func (r *readable) Info() fs.FileInfo { return r.src.Info() }

func (r *readable) Total() int64 { return r.src.Size() }

// md5 returns the MD5 of the first n bytes.
func (r *readable) md5(ctx context.Context, n int64) (sum [md5.Size]byte, err error) {
	h := md5.New()
	buf := make([]byte, chunk.Granularity)
	for at := int64(0); at < n; {
		if ctx.Err() != nil {
			return sum, context.Cause(ctx)
		}
		p := buf[:min(chunk.Granularity, n-at)]
		if err := r.src.ReadFull(p, at); err != nil {
			return sum, err
		}
		_, _ = h.Write(p) // never fails
		at += int64(len(p))
		r.reread(int64(len(p)), at, n)
	}
	return [md5.Size]byte(h.Sum(nil)), nil
}

// hash continues a checksum up to another offset. The comparison of which this is a part
// ends at end.
func (r *readable) hash(ctx context.Context, from chunk.Checkpoint, to, end int64) (chunk.Checkpoint, error) {
	for from.Offset < to {
		next, err := r.src.Hash(ctx, from, min(from.Offset+rereadStep, to))
		if err != nil {
			return next, err
		}
		r.reread(next.Offset-from.Offset, next.Offset, end)
		from = next
	}
	return from, nil
}

func (r *readable) CompareAll(ctx context.Context, s Saved) error {
	return r.compare(ctx, chunk.Checkpoint{}, s.Checkpoints...)
}

func (r *readable) CompareLast(ctx context.Context, s Saved) error {
	var from, last chunk.Checkpoint
	for _, c := range s.Checkpoints {
		from, last = last, c
	}
	return r.compare(ctx, from, last)
}

// compare reads the source from a checkpoint and compares it with ascending checkpoints
// of an earlier run. It checks all of them, because a resume may start from any of them.
func (r *readable) compare(ctx context.Context, from chunk.Checkpoint, list ...chunk.Checkpoint) (err error) {
	for _, want := range list {
		if from, err = r.hash(ctx, from, want.Offset, list[len(list)-1].Offset); err != nil {
			return err
		}
		if from != want {
			return fmt.Errorf("%w: its first %d bytes have changed", session.ErrSourceChanged, want.Offset)
		}
	}
	return nil
}
