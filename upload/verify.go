package upload

import (
	"bytes"
	"context"
	"crypto/md5"
	"errors"
	"fmt"
	"io"
	"time"

	"gcsup/chunk"
	"gcsup/session"
)

// verifyPrefix compares the checksum in a reply, that of the bytes before
// r.Committed, with that of the source. compared reports whether the reply has a
// usable checksum. If the checksums differ, the error is differs if the source is
// unchanged, and err if the source has changed.
//
// The service reports an MD5, and since 2026 a CRC32C. The MD5 is not computed while
// sending, because it costs more time than everything else. It is compared after a
// query, if the prefix is short enough to be read again.
func verifyPrefix(ctx context.Context, c content, r session.Reply) (compared bool, differs, err error) {
	offset := r.Committed
	if r.RunningCRC32C != nil {
		ours, ok := c.prefix(offset)
		switch {
		case !ok:
			return true, nil, nil
		case ours != *r.RunningCRC32C:
			differs, err = prefixDiffers(ctx, c, offset, "CRC32C")
			return true, differs, err
		}
		c.proven()
		return true, nil, nil
	}
	if r.Op != session.OpQuery || !r.HasRangeMD5 {
		return false, nil, nil
	}
	head := c.head(ctx, offset)
	if head == nil {
		return false, nil, nil
	}
	switch sum, err := md5Of(head, offset); {
	case err != nil:
		return true, nil, nil // the next reader of these bytes reports the error
	case sum != r.RangeMD5:
		differs, err = prefixDiffers(ctx, c, offset, "MD5")
		return true, differs, err
	}
	c.proven()
	return true, nil, nil
}

// md5Of returns the MD5 of n bytes.
func md5Of(r io.Reader, n int64) ([md5.Size]byte, error) {
	h := md5.New()
	if _, err := io.CopyN(h, r, n); err != nil {
		return [md5.Size]byte{}, err
	}
	return [md5.Size]byte(h.Sum(nil)), nil
}

// prefixDiffers returns the error for a prefix whose checksum is not that of the
// server: differs, or err if the source has changed.
func prefixDiffers(ctx context.Context, c content, offset int64, what string) (differs, err error) {
	if err := c.unchanged(ctx); err != nil {
		return nil, err
	}
	if c.isCopy() {
		return nil, &copyDiffers{fmt.Errorf("%w: its first %d bytes are not those that the server holds", session.ErrSourceChanged, offset)}
	}
	return fmt.Errorf("the %s of the first %d bytes at the server is not that of the source", what, offset), nil
}

// samePrefix reports whether the server's checksum of the bytes before r.Committed is
// that of the source. If necessary, it reads all of them.
func samePrefix(ctx context.Context, c content, r session.Reply) (bool, error) {
	f, ok := c.(*fileContent)
	if !ok {
		return false, nil
	}
	switch {
	case r.RunningCRC32C != nil:
		ours, err := f.crcOf(ctx, r.Committed)
		return ours == *r.RunningCRC32C, err
	case r.HasRangeMD5:
		sum, err := md5Of(&headReader{ctx: ctx, f: f, end: r.Committed}, r.Committed)
		return sum == r.RangeMD5, err
	}
	return false, nil
}

// copyDiffers is the error for a copy of a source that differs from the source, as
// the server's checksum shows.
type copyDiffers struct{ error }

func (e *copyDiffers) Unwrap() error { return e.error }

// verifyObject compares the finished object with the source. crc32c is the checksum
// of the source. The result is the object that the service described.
func verifyObject(o *session.Object, spec Spec, size int64, crc32c uint32) (*session.Object, error) {
	switch {
	case o.Size != size:
		return nil, fmt.Errorf("the object at the destination (generation %d) has %d bytes, the source %d", o.Generation, o.Size, size)
	case o.HasCRC32C && o.CRC32C != crc32c:
		return nil, fmt.Errorf("the object at the destination (generation %d) has crc32c %s, the source %s",
			o.Generation, chunk.EncodeCRC32C(o.CRC32C), chunk.EncodeCRC32C(crc32c))
	case spec.MD5 != nil && o.MD5 != nil && !bytes.Equal(o.MD5, spec.MD5):
		return nil, fmt.Errorf("the object at the destination (generation %d) has MD5 %x, expected is %x", o.Generation, o.MD5, spec.MD5)
	case o.Bucket != "" && o.Bucket != spec.Bucket || o.Name != "" && o.Name != spec.Object:
		return nil, fmt.Errorf("the session made gs://%s/%s", o.Bucket, o.Name)
	}
	if o.Bucket == "" || o.Name == "" { // a reply in headers
		named := *o
		named.Bucket, named.Name = spec.Bucket, spec.Object
		return &named, nil
	}
	return o, nil
}

// clockMargin is the precision of the Date header, with which the age of an
// object is computed.
const clockMargin = time.Second

// older reports whether the object in r was made before the time since, by the
// service's clock. It returns false if that is unknown.
func older(r session.Reply, since time.Time) bool {
	if r.Object == nil || r.Object.Created.IsZero() || r.Date.IsZero() || since.IsZero() {
		return false
	}
	// The monotonic clock stops while a machine is suspended.
	elapsed := max(time.Since(since), time.Now().Round(0).Sub(since.Round(0)))
	return r.Object.Created.Before(r.Date.Add(-elapsed - clockMargin))
}

// sourceError makes the errors of a source uniform, so that they do not depend on the
// layer that found them.
func sourceError(err error) error {
	if errors.Is(err, chunk.ErrChanged) {
		return fmt.Errorf("%w (nothing more of it was sent)", err)
	}
	return err
}
