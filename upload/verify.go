package upload

import (
	"context"
	"crypto/md5"
	"errors"
	"fmt"
	"io"

	"gcsup/chunk"
	"gcsup/session"
)

// verifyPrefix compares the checksum that a reply reports of the bytes before
// r.Committed with the source's. It reports whether it could compare anything.
//
// The service reports an MD5, and since 2026 a CRC32C. The MD5 is not computed
// while sending, because it costs more than all the rest. It is compared after a
// query, if the prefix is short enough to be read again.
func verifyPrefix(ctx context.Context, c content, r session.Reply) (compared bool, err error) {
	offset := r.Committed
	if r.RunningCRC32C != nil {
		ours, ok := c.prefix(offset)
		switch {
		case !ok:
			return true, nil
		case ours != *r.RunningCRC32C:
			return true, prefixDiffers(ctx, c, r, "CRC32C")
		}
		c.proven()
		return true, nil
	}
	if r.Op != session.OpQuery || !r.HasRangeMD5 {
		return false, nil
	}
	head := c.head(ctx, offset)
	if head == nil {
		return false, nil
	}
	h := md5.New()
	switch n, err := io.Copy(h, head); {
	case err != nil || n != offset:
		return true, nil // the next to read these bytes reports what is wrong
	case [16]byte(h.Sum(nil)) != r.RangeMD5:
		return true, prefixDiffers(ctx, c, r, "MD5")
	}
	c.proven()
	return true, nil
}

// prefixDiffers returns the error for a prefix whose checksum is not the
// server's: the source's, if that has changed, or else a *[session.Error] that
// blames the server.
func prefixDiffers(ctx context.Context, c content, r session.Reply, what string) error {
	if err := c.unchanged(ctx); err != nil {
		return err
	}
	if c.isCopy() {
		return &copyDiffers{fmt.Errorf("%w: its first %d bytes are not those that the server holds", session.ErrSourceChanged, r.Committed)}
	}
	return &session.Error{
		Op: r.Op, Status: r.Status, Offset: r.Committed, Kind: session.ErrChecksum,
		Err: fmt.Errorf("the %s of the first %d bytes at the server is not that of the source", what, r.Committed),
	}
}

// copyDiffers is the error for a copy of a source that the server's checksum
// showed to be another file.
type copyDiffers struct{ error }

func (e *copyDiffers) Unwrap() error { return e.error }

// verifyObject compares the finished object with the source. crc32c is that of
// the source. The result describes the object as it was verified.
func verifyObject(o session.Object, spec Spec, size int64, crc32c uint32) (*session.Object, error) {
	switch {
	case o.Size != size:
		return nil, fmt.Errorf("the object at the destination (generation %d) has %d bytes, the source %d", o.Generation, o.Size, size)
	case o.HasCRC32C && o.CRC32C != crc32c:
		return nil, fmt.Errorf("the object at the destination (generation %d) has crc32c %s, the source %s",
			o.Generation, chunk.EncodeCRC32C(o.CRC32C), chunk.EncodeCRC32C(crc32c))
	case o.Bucket != "" && o.Bucket != spec.Bucket || o.Name != "" && o.Name != spec.Object:
		return nil, fmt.Errorf("the session made gs://%s/%s", o.Bucket, o.Name)
	}
	o.Bucket, o.Name = spec.Bucket, spec.Object
	o.CRC32C, o.HasCRC32C = crc32c, true
	return &o, nil
}

// sourceError describes what is wrong with a source in one way, whichever layer
// noticed it.
func sourceError(err error) error {
	if errors.Is(err, chunk.ErrChanged) {
		return fmt.Errorf("%w (nothing more of it was sent)", err)
	}
	return err
}
