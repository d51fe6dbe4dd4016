// Package content describes the bytes of an object to what sends them. Package source
// implements [Source], and package engine calls it.
//
// The two main calls are [Source.Next], which returns the body of the next request, and
// [Source.Whole], which returns the checksum of all bytes.
//
// # Guarantees
//   - Every body except the last one ends at a multiple of 256 KiB.
//   - The last body has the checksum of all bytes, and the source was unchanged before it.
//   - A source that is Replayable can start over at byte 0 after a session is lost.
package content

import (
	"context"
	"fmt"
	"io"

	"gcsup/chunk"
)

// HeadSize is the number of bytes that [net/http.DetectContentType] considers.
const HeadSize = 512

// Source is the content of one object, as its sender needs it.
type Source interface {
	// Next returns the body of the next request, from offset. A body that is not the last
	// one ends at a multiple of 256 KiB and has at least 256 KiB. It has at most limit
	// bytes, or 256 KiB more if offset is between two multiples. Next blocks until the
	// body is known. Before it returns the last body, it checks that the source is
	// unchanged.
	Next(ctx context.Context, offset, limit int64) (Body, error)

	// Committed records that the server has committed all bytes before offset.
	Committed(offset int64)

	// Total returns the size, or -1 while it is not known.
	Total() int64

	// Replayable reports whether Next can still return the bytes from offset 0.
	Replayable() bool

	// Restart makes Next start at offset 0 again, for a new session. It is called only if the
	// content is Replayable.
	Restart()

	// Whole returns the size and the CRC32C of all bytes. It reads them if necessary. The
	// error of a stream that has not ended wraps [session.ErrUnexpectedData].
	Whole(ctx context.Context) (chunk.Checkpoint, error)

	// Compare compares a checksum with that of the content. With reread it reads any
	// number of bytes again. Otherwise the verdict is Unknown if that would take long.
	Compare(ctx context.Context, p Prefix, reread bool) (Verdict, error)

	// Changed returns an error if the source is the reason why its first n bytes are not
	// those of the server: it has changed, or it is a copy that differs.
	Changed(ctx context.Context, n int64) error
}

// Body is the body of one request.
type Body struct {
	chunk.Range
	io.Reader
	Last   bool
	CRC32C uint32 // of the whole content, with Last

	Stop func() error // stops reading, and returns the error of the source; nil if there is nothing to stop
}

// Finish stops reading the body. It returns the error of the source.
func (b Body) Finish() error {
	if b.Stop == nil {
		return nil
	}
	return b.Stop()
}

// Loaded is a content whose bytes are all in memory.
type Loaded struct {
	Size   int64
	CRC32C uint32
	Open   func() io.Reader // returns a new reader of all bytes
}

// Prefix has the checksum that the server reports of the bytes before Offset.
type Prefix struct {
	Offset int64
	CRC32C *uint32   // nil if it is not reported
	MD5    *[16]byte // nil if it is not reported; not used with CRC32C
}

// String describes the prefix in an error.
func (p Prefix) String() string {
	kind := "MD5"
	if p.CRC32C != nil {
		kind = "CRC32C"
	}
	return fmt.Sprintf("%s of the first %d bytes", kind, p.Offset)
}

// Verdict is the result of a comparison with a checksum.
type Verdict int

const (
	Unknown Verdict = iota // the content cannot tell, or only by reading many bytes
	Same
	Different
)
