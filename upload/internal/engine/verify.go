package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"gcsup/chunk"
	"gcsup/internal/checksum"
	"gcsup/internal/decide"
	"gcsup/session"
)

// VerifyObject compares the finished object with the source. crc32c is the checksum
// of the source. The result is the object that the service described.
func VerifyObject(o *session.Object, spec session.Spec, size int64, crc32c uint32) (*session.Object, error) {
	switch {
	case o.Size != size:
		return nil, fmt.Errorf("the object at the destination (generation %d) has %d bytes, the source %d", o.Generation, o.Size, size)
	case o.HasCRC32C && o.CRC32C != crc32c:
		return nil, fmt.Errorf("the object at the destination (generation %d) has crc32c %s, the source %s",
			o.Generation, checksum.Encode(o.CRC32C), checksum.Encode(crc32c))
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

// Confirm returns an object that the service has just made, with its CRC32C. If the reply did not have that, the metadata
// of the object is read. unverified is why the CRC32C is still not known; the object exists nevertheless.
func (q *Requester) Confirm(ctx context.Context, made *session.Object) (o *session.Object, unverified error) {
	if made.HasCRC32C {
		return made, nil
	}
	a, err := q.Ask(ctx, decide.Request{}, q.Stat)
	switch now := a.Object; {
	case err != nil:
		return made, fmt.Errorf("the service did not report the CRC32C of the object, which cannot be read: %w", err)
	case now == nil || made.Generation != 0 && now.Generation != made.Generation:
		return made, errors.New("the service did not report the CRC32C of the object, which was replaced or deleted since")
	case !now.HasCRC32C:
		return made, errors.New("the service does not report the CRC32C of the object")
	default:
		known := *made
		known.Generation, known.Size, known.CRC32C, known.HasCRC32C = now.Generation, now.Size, now.CRC32C, true
		return &known, nil
	}
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

// SourceFailed returns the error of an upload whose source could not be read or has
// changed.
func SourceFailed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return NewInterruption(ctx, nil)
	}
	return SourceError(err)
}

// SourceError makes the errors of a source uniform, so that they do not depend on the
// layer that found them.
func SourceError(err error) error {
	if errors.Is(err, chunk.ErrChanged) {
		return fmt.Errorf("%w (nothing more of it was sent)", err)
	}
	return err
}
