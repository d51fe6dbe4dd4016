package engine

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"gcsup/chunk"
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

// SourceError makes the errors of a source uniform, so that they do not depend on the
// layer that found them.
func SourceError(err error) error {
	if errors.Is(err, chunk.ErrChanged) {
		return fmt.Errorf("%w (nothing more of it was sent)", err)
	}
	return err
}
