package source

import (
	"context"
	"crypto/md5"
	"fmt"
	"io"

	"gcsup/chunk"
	"gcsup/session"
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

// MD5 returns the MD5 of n bytes of r.
func MD5(r io.Reader, n int64) ([md5.Size]byte, error) {
	h := md5.New()
	if _, err := io.CopyN(h, r, n); err != nil {
		return [md5.Size]byte{}, err
	}
	return [md5.Size]byte(h.Sum(nil)), nil
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

func (f *File) Changed(ctx context.Context, n int64) error {
	if err := f.Unchanged(ctx, f.hashed); err != nil {
		return err
	}
	if f.copied {
		return &CopyDiffers{fmt.Errorf("%w: its first %d bytes are not those that the server holds", session.ErrSourceChanged, n)}
	}
	return nil
}
