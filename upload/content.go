package upload

import (
	"context"
	"io"

	"gcsup/chunk"
)

// content is the content that a transfer sends: a file, whose bytes can be read
// again, or a stream, of which only a window is kept.
type content interface {
	// part returns the next part to send, from offset. A part that is not the last one
	// ends at a multiple of 256 KiB and has at least 256 KiB. It has at most limit bytes,
	// or 256 KiB more if offset is between two multiples. part blocks until the part is
	// known. Its errors are those of the source.
	part(ctx context.Context, offset, limit int64) (part, error)

	// committed records that the server has committed all bytes before offset.
	committed(offset int64)

	// total returns the size, or -1 while it is not known.
	total() int64

	// replayable reports whether part can still return the bytes from offset 0.
	replayable() bool

	// whole returns the CRC32C of all bytes, for a content whose total is
	// known.
	whole(ctx context.Context) (uint32, error)

	// prefix returns the CRC32C of the bytes before offset, which were sent. ok is false
	// if many bytes would have to be read.
	prefix(offset int64) (crc32c uint32, ok bool)

	// head returns a reader of the bytes before offset, for a hash other than CRC32C. It
	// is nil for many bytes, unless they must still be compared.
	head(ctx context.Context, offset int64) io.Reader

	// unchanged returns an error if the source has changed. It may have to read many
	// bytes.
	unchanged(ctx context.Context) error

	// isCopy reports whether the session began with another file, and the bytes must
	// still be compared. proven records that a checksum of the server matched.
	isCopy() bool
	proven()
}

// part is the body of one request.
type part struct {
	chunk.Range
	last   bool
	crc32c uint32 // of the whole content, with last
	body   io.Reader
	finish func() error // stops reading body; returns the error of the source
}

// headLimit bounds the bytes that are read again only to compare an MD5 from the
// server. The CRC32C is known for any length. If the server does not report it, a
// longer prefix is checked only at the end of the upload.
const headLimit = checkpointEvery
