package upload

import (
	"context"
	"io"

	"gcsup/chunk"
)

// content is what a transfer sends: a file, whose bytes can be read again, or a
// stream, of which a window is kept.
type content interface {
	// part returns what to send from offset on. A part that is not the last one
	// ends at a multiple of 256 KiB and has at least 256 KiB. It has at most
	// limit bytes, or 256 KiB more if offset is between two multiples. part blocks until that is known. Its errors are the source's.
	part(ctx context.Context, offset, limit int64) (part, error)

	// committed notes that the server holds all bytes before offset for good.
	committed(offset int64)

	// total returns the size, or -1 while it is not known.
	total() int64

	// replayable reports whether part(0) would still work.
	replayable() bool

	// rereadable reports whether another call, or another process, could read
	// the same bytes.
	rereadable() bool

	// whole returns the CRC32C of all bytes, for a content whose total is
	// known.
	whole(ctx context.Context) (uint32, error)

	// prefix returns the CRC32C of the bytes before offset, which were sent,
	// if that needs no long reading.
	prefix(offset int64) (crc32c uint32, ok bool)

	// head reads the bytes before offset again, for a hash other than CRC32C.
	// It is nil if they are many, unless they are still to be compared.
	head(ctx context.Context, offset int64) io.Reader

	// unchanged returns an error if the source is not what it was. It may have
	// to read much.
	unchanged(ctx context.Context) error

	// isCopy reports whether the session began with another file, and the
	// bytes are still to be compared. proven ends that: a checksum of the
	// server agreed.
	isCopy() bool
	proven()
}

// part is the body of one request.
type part struct {
	chunk.Range
	last   bool
	crc32c uint32 // of the whole content, with last
	body   io.Reader
	finish func() error // ends the reading of body; its error is the source's
}

// headLimit bounds what is read again only to compare an MD5 that the server
// sent. Where it does not report the CRC32C, which is at hand for any length, a
// longer prefix is left to the check at the end.
const headLimit = checkpointEvery
