package source

import (
	"context"
	"crypto/md5"
	"io"

	"gcsup/chunk"
	"gcsup/upload/internal/content"
)

// headLimit bounds the bytes that are read again only to compare an MD5 from the
// server. The CRC32C is known for any length. If the server does not report it, a
// longer prefix is checked only at the end of the upload.
const headLimit = 32 << 20

func (f *File) Whole(ctx context.Context) (chunk.Checkpoint, error) {
	from, _ := f.sum.Nearest(f.Total()) // the zero Checkpoint if there is none
	return f.hash(ctx, from, f.Total(), f.Total())
}

// Compare compares a CRC32C if it reads less than 256 KiB, and an MD5 of at most 32 MiB,
// or of any number of bytes that must still be compared.
func (f *File) Compare(ctx context.Context, p content.Prefix, reread bool) (content.Verdict, error) {
	var same bool
	var err error
	switch {
	case p.CRC32C != nil:
		from, ok := f.sum.Nearest(p.Offset)
		if !reread && (!ok || p.Offset-from.Offset >= chunk.Granularity) {
			return content.Unknown, nil
		}
		var ours chunk.Checkpoint
		ours, err = f.hash(ctx, from, p.Offset, p.Offset)
		same = ours.CRC32C == *p.CRC32C
	case p.MD5 != nil && (reread || f.copied || p.Offset <= headLimit):
		var ours [md5.Size]byte
		ours, err = f.md5(ctx, p.Offset)
		same = ours == *p.MD5
	default:
		return content.Unknown, nil
	}
	if err != nil {
		return content.Unknown, err
	}
	if same {
		f.copied = false
	}
	return verdict(same), nil
}

// md5 returns the MD5 of the first n bytes.
func (f *File) md5(ctx context.Context, n int64) (sum [md5.Size]byte, err error) {
	h := md5.New()
	buf := make([]byte, chunk.Granularity)
	for at := int64(0); at < n; {
		if ctx.Err() != nil {
			return sum, context.Cause(ctx)
		}
		p := buf[:min(chunk.Granularity, n-at)]
		if err := f.src.ReadFull(p, at); err != nil {
			return sum, err
		}
		_, _ = h.Write(p) // never fails
		at += int64(len(p))
		f.reread(int64(len(p)), at, n)
	}
	return [md5.Size]byte(h.Sum(nil)), nil
}

// MD5 returns the MD5 of n bytes of r.
func MD5(r io.Reader, n int64) ([md5.Size]byte, error) {
	h := md5.New()
	if _, err := io.CopyN(h, r, n); err != nil {
		return [md5.Size]byte{}, err
	}
	return [md5.Size]byte(h.Sum(nil)), nil
}

// hash continues a checksum up to another offset. The comparison of which this is a part
// ends at end.
func (f *File) hash(ctx context.Context, from chunk.Checkpoint, to, end int64) (chunk.Checkpoint, error) {
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

func (f *File) Equal(ctx context.Context, c chunk.Checkpoint) (bool, error) {
	f.noteRacy()
	whole, err := f.hash(ctx, chunk.Checkpoint{}, f.Total(), f.Total()) // not a sum that is known: the bytes may have changed since
	if err != nil || whole != c {
		return false, err
	}
	err = f.Unchanged(ctx, func() chunk.Checkpoint { return c })
	return err == nil, err
}
