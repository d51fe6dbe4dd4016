package upload

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"io"

	"gcsup/chunk"
	"gcsup/session"
)

// unexpectedBytes is the error for a source that does not have the CRC32C that the
// caller expects. The session is still open.
type unexpectedBytes struct{ error }

func (e *unexpectedBytes) Unwrap() error { return e.error }

// expected compares the CRC32C of the source with the one that the caller expects. It
// must be called before the last request is sent.
func (t *transfer) expected(crc32c uint32) error {
	want := t.wire.spec.CRC32C
	if want == nil || *want == crc32c {
		return nil
	}
	return &unexpectedBytes{fmt.Errorf("%w: the source has crc32c %s, expected is %s",
		session.ErrChecksum, chunk.EncodeCRC32C(crc32c), chunk.EncodeCRC32C(*want))}
}

// expectedMD5 compares the MD5 of n bytes with the one that the caller expects.
func (t *transfer) expectedMD5(r io.Reader, n int64) error {
	want := t.wire.spec.MD5
	if want == nil {
		return nil
	}
	sum, err := md5Of(r, n)
	if err != nil {
		return err
	}
	if sum == [md5.Size]byte(want) {
		return nil
	}
	return fmt.Errorf("%w: the source has MD5 %x, expected is %s", session.ErrChecksum, sum, hex.EncodeToString(want))
}

// refusedMD5 finds out why the service refused the bytes. If the source does not
// have the MD5 that the caller expects, another session would fail as well. The MD5
// is not computed while sending, because it costs more than everything else.
func (t *transfer) refusedMD5(ctx context.Context, r session.Reply) error {
	if t.wire.spec.MD5 == nil || !r.Damaged() {
		return nil
	}
	n := t.content.total()
	var whole io.Reader
	if f, ok := t.content.(*fileContent); ok {
		whole = &headReader{ctx: ctx, f: f, end: n}
	} else if n >= 0 {
		whole = t.content.head(ctx, n)
	}
	if whole == nil {
		return nil // a stream that cannot be sent again fails anyway
	}
	if err := t.expectedMD5(whole, n); err != nil {
		return t.sourceFailed(ctx, err)
	}
	return nil
}
